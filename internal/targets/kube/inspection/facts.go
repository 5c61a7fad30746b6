// Package inspection derives facts from objects of the API server: what products show, the usable nodes, the containers
// in a pod besides the agent, and the properties of storage classes. Its functions are pure and
// send no requests.
package inspection

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Facts returns the facts about the cluster. What the evidence does not show is result.Unknown.
func Facts(e product.Evidence) []result.Fact {
	version := result.Fact{Name: "kubernetes", Value: cmp.Or(e.Version, result.Unknown)}
	return slices.Concat([]result.Fact{version, e.Distribution()}, nodeFacts(e), e.MachineFacts(), e.NetworkFacts(),
		e.MeshFacts(), podFacts(e))
}

// nodeFacts returns facts about the nodes of the experiment. If the nodes differ, a fact has all their values.
func nodeFacts(e product.Evidence) []result.Fact {
	of := func(name string, value func(corev1.Node) string) result.Fact {
		seen := map[string]bool{}
		for _, n := range e.Nodes {
			seen[cmp.Or(value(n), result.Unknown)] = true
		}
		if len(seen) == 0 { // nodes cannot be listed: use the report of a pod on one of them
			seen[reported(e, name)] = true
		}
		return result.Fact{Name: name, Value: strings.Join(slices.Sorted(maps.Keys(seen)), " | ")}
	}
	label := func(key string) func(corev1.Node) string {
		return func(n corev1.Node) string { return cmp.Or(n.Labels[key], noneGiven) }
	}
	return []result.Fact{
		of("kubelet", func(n corev1.Node) string { return n.Status.NodeInfo.KubeletVersion }),
		of("container-runtime", func(n corev1.Node) string { return n.Status.NodeInfo.ContainerRuntimeVersion }),
		of("kernel", func(n corev1.Node) string { return n.Status.NodeInfo.KernelVersion }),
		of("os", func(n corev1.Node) string { return n.Status.NodeInfo.OSImage }),
		of("architecture", func(n corev1.Node) string { return n.Status.NodeInfo.Architecture }),
		of("cpus", func(n corev1.Node) string {
			if cpus := n.Status.Capacity.Cpu(); !cpus.IsZero() {
				return cpus.String()
			}
			return ""
		}),
		of("memory", func(n corev1.Node) string {
			if memory := n.Status.Capacity.Memory(); !memory.IsZero() {
				return unit.Format(float64(memory.Value()), unit.Byte)
			}
			return ""
		}),
		of("node-type", label(corev1.LabelInstanceTypeStable)),
		of("zone", label(corev1.LabelTopologyZone)),
		of("region", label(corev1.LabelTopologyRegion)),
		of("provider", func(n corev1.Node) string {
			provider, _, _ := strings.Cut(n.Spec.ProviderID, ":")
			return cmp.Or(provider, noneGiven)
		}),
	}
}

// reported returns a fact about the machine from the pods' preflight reports.
func reported(e product.Evidence, name string) string {
	for _, r := range []*preflight.Report{e.Pod, e.Node} {
		if r == nil {
			continue
		}
		if value := result.FactOf(r.Facts, name); value != "" && value != result.Unknown {
			return value
		}
	}
	return result.Unknown
}

// podFacts returns facts from the preflight reports of pods. Only a pod in the node's network sees the node's devices.
func podFacts(e product.Evidence) []result.Fact {
	list := []result.Fact{
		{Name: "cpu-model", Value: reported(e, "cpu-model")},
		{Name: result.ConfidentialVM, Value: confidential(e)},
		{Name: "pod-mtu", Value: mtuOf(e.Pod)},
		{Name: "node-mtu", Value: mtuOf(e.Node)},
		{Name: "pod-bandwidth", Value: bandwidth(e)},
	}
	list = append(list, e.TunnelMTU()...)
	for _, place := range []struct {
		name   string
		report *preflight.Report
	}{{"pod", e.Pod}, {"node", e.Node}} {
		var d machine.Device
		if place.report != nil {
			d = place.report.Device
		}
		for _, f := range []result.Fact{{Name: "device", Value: d.Name}, {Name: "driver", Value: d.Driver},
			{Name: "offloads", Value: d.Offloads}, {Name: "qdisc", Value: d.Qdisc}, {Name: "speed", Value: d.Speed}} {
			list = append(list, result.Fact{Name: place.name + "-" + f.Name, Value: cmp.Or(f.Value, result.Unknown)})
		}
	}
	return append(append(list, sysctlsOf(e.Pod, "")...), sysctlsOf(e.Node, "node.")...)
}

// sysctlsOf returns the sysctls in a report. It leaves out unknown ones: a pod cannot read all sysctls of its machine.
func sysctlsOf(r *preflight.Report, prefix string) []result.Fact {
	if r == nil {
		return nil
	}
	var list []result.Fact
	for _, f := range r.Facts {
		if strings.HasPrefix(f.Name, "sysctl.") && f.Value != result.Unknown {
			list = append(list, result.Fact{Name: prefix + f.Name, Value: f.Value})
		}
	}
	return list
}

// confidential returns the signs of confidential machines, from the pods' reports and the labels of the nodes. If there
// is no sign, it returns what the pods reported, which may be that they saw none.
func confidential(e product.Evidence) string {
	var signs []string
	within := reported(e, result.ConfidentialVM)
	if within != result.Unknown && within != result.NoConfidentialSign {
		signs = append(signs, within)
	}
	for _, label := range e.ConfidentialLabels() {
		signs = append(signs, "label "+label)
	}
	return cmp.Or(strings.Join(signs, ", "), within)
}

// bandwidth returns the bandwidth limits in the pods' annotations. Whether they are enforced depends on the plugin: the
// CNI bandwidth plugin in a chain enforces them, and Cilium with its bandwidth manager.
func bandwidth(e product.Evidence) string {
	if e.Pod == nil || e.Admitted == nil {
		return result.Unknown
	}
	var list []string
	for _, direction := range []string{"egress", "ingress"} {
		value := e.Admitted.Annotations["kubernetes.io/"+direction+"-bandwidth"]
		switch {
		case product.IsPlainSetting(value):
			list = append(list, direction+" "+value)
		case value != "":
			list = append(list, direction+" (no plain setting)")
		}
	}
	return cmp.Or(strings.Join(list, ", "), noneGiven) + " (annotations of the pods)"
}

// mtuOf returns the MTU of a report in bytes as a fact's value.
func mtuOf(r *preflight.Report) string {
	if r == nil || r.MTU == 0 {
		return result.Unknown
	}
	return strconv.Itoa(r.MTU)
}
