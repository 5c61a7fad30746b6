package trial

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/host/remote"
)

// hostname is the label that selects a node.
const hostname = "kubernetes.io/hostname"

const (
	lingerTime = 4 * time.Second // how long a pod answers after the signal to end; its Service may still send requests
	grace      = 6               // s, from that signal until the pod is killed
)

// gate is the readiness gate of pods, a condition that the run sets.
const gate = "knotmeter.dev/open"

// serverSpec returns the spec of a pod that answers probes, on the prober's node or on another one. The pod announces
// itself to an address, unless that is zero.
func (r *run) serverSpec(announce netip.AddrPort) map[string]any {
	spec := r.objects("pod").PodSpec("")
	container := spec["containers"].([]any)[0].(map[string]any)
	container["args"] = append([]string{remote.RespondCommand},
		responder{port: port, hash: r.token.Hash(), linger: lingerTime, announce: announce}.args()...)
	spec["terminationGracePeriodSeconds"] = grace
	operator := "NotIn"
	if r.Workload.Same {
		operator = "In"
	}
	if r.Endpoint.Node != "" {
		spec["affinity"] = map[string]any{"nodeAffinity": map[string]any{
			"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{"nodeSelectorTerms": []any{map[string]any{
				"matchExpressions": []any{map[string]any{"key": hostname, "operator": operator,
					"values": []string{r.Endpoint.Node}}}}}}}}
	}
	maps.Copy(spec, r.Endpoint.Pod)
	return spec
}

// A server is a pod that answers probes.
type server struct {
	n    uint64
	name string
	ip   netip.Addr
}

func (s server) at() netip.AddrPort { return netip.AddrPortFrom(s.ip, port) }

// startTime is how long a pod may take to start: 30 s more than Kubernetes' objective for pods whose image is present.
const startTime = 35 * time.Second

// startServer starts a pod that answers probes, and waits until it runs and, without a readiness gate, is ready.
func (r *run) startServer(ctx context.Context, gated bool) (server, error) {
	spec := r.serverSpec(netip.AddrPort{})
	if gated {
		spec["readinessGates"] = []any{map[string]any{"conditionType": gate}}
	}
	n, _, err := r.create(ctx, "pod", map[string]any{"spec": spec})
	if err != nil {
		return server{}, err
	}
	return r.awaitServer(ctx, n, gated)
}

// awaitServer waits until pod n runs and, without a readiness gate, is ready.
func (r *run) awaitServer(ctx context.Context, n uint64, gated bool) (server, error) {
	s := server{n: n, name: r.objects("pod").ObjectName(n)}
	var p pod
	if !poll(ctx, startTime, func() bool {
		p = r.state.pod(s.name)
		return p.ip != "" && p.running && (p.ready || gated)
	}) {
		return server{}, fmt.Errorf("pod %s does not start within %v: %s", s.name, startTime, r.waitReason(p))
	}
	var err error
	s.ip, err = netip.ParseAddr(p.ip)
	return s, err
}

// waitReason returns why a pod does not start.
func (r *run) waitReason(p pod) string {
	if p.waitReason == "no node" && !r.Workload.Same {
		return "no node takes it; the case wants a node other than the prober's, at=same does not"
	}
	return p.waitReason
}

// serviceSpec returns a Service for all pods of the run.
func (r *run) serviceSpec() map[string]any {
	var ports []any
	for _, protocol := range []string{"TCP", "UDP"} {
		ports = append(ports, map[string]any{"name": "probe-" + map[string]string{"TCP": "tcp", "UDP": "udp"}[protocol],
			"port": port, "protocol": protocol})
	}
	return map[string]any{"spec": map[string]any{"selector": r.selector(), "ports": ports}}
}

// selector returns the labels that select the pods of the run.
func (r *run) selector() map[string]string { return map[string]string{apiserver.LabelRun: r.id} }

// policySpec returns a policy that forbids all traffic to the pods of the run and, with egress, also from them.
func (r *run) policySpec(egress bool) map[string]any {
	types := []string{"Ingress"}
	if egress {
		types = append(types, "Egress")
	}
	return map[string]any{"spec": map[string]any{"podSelector": map[string]any{"matchLabels": r.selector()},
		"policyTypes": types}}
}

// replicas is the number of pods of the Deployment of a rollout.
const replicas = 2

// deploymentSpec returns a Deployment that removes a pod only when its replacement is available.
func (r *run) deploymentSpec() map[string]any {
	spec := r.serverSpec(netip.AddrPort{})
	delete(spec, "restartPolicy") // a Deployment allows only Always, the default
	return map[string]any{"spec": map[string]any{
		"replicas": replicas, "selector": map[string]any{"matchLabels": r.selector()},
		"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": 1, "maxUnavailable": 0}},
		"template": map[string]any{"metadata": r.objects("pod").PodMeta(), "spec": spec},
	}}
}
