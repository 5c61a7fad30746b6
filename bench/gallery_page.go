package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Lab targets in the gallery's experiments.
const (
	bareNative = "lab:native"
	bareVXLAN  = "lab:vxlan"
)

// A pairing is a product and the lab's datapath of the same kind.
type pairing struct{ product, bare string }

var pairings = []pairing{
	{"flannel-host-gw", bareNative}, {"calico-direct", bareNative}, {"kube-router", bareNative},
	{"cilium-native", bareNative}, {"cilium-native-kpr", bareNative},
	{"flannel-vxlan", bareVXLAN}, {"calico-vxlan", bareVXLAN}, {"cilium-vxlan", bareVXLAN},
}

// tunnels lists pairs of targets, of which the second uses VXLAN.
var tunnels = []struct{ native, vxlan string }{
	{bareNative, bareVXLAN}, {"flannel-host-gw", "flannel-vxlan"}, {"calico-direct", "calico-vxlan"},
	{"cilium-native", "cilium-vxlan"}, {"cilium-native-kpr", "cilium-vxlan"},
}

// shownFacts lists the facts of a target on the page.
var shownFacts = []string{"cni", "encapsulation", "encryption", "kube-proxy", "pod-mtu", "cni-settings"}

// A page presents experiments of the gallery.
type page struct {
	title, about string
	experiments  []string
	write        func(b *bytes.Buffer, list []galleryExperiment)
}

// A galleryExperiment is a measured experiment with its comparison.
type galleryExperiment struct {
	name string
	result.Results
	compare.Comparison
}

// pages has the pages by file name, without the suffix .md.
var pages = map[string]page{
	"one-machine-cnis": {
		title: "CNIs on one machine",
		about: "The published tables' shape, nine paths and four workloads, on real products. The paths are three " +
			"experiments, because one machine cannot start the pods of all of them at a time.",
		experiments: []string{"one-machine-nodes", "one-machine-pods", "one-machine-services"},
		write:       writePaths,
	},
	"one-machine-bare": {
		title: "CNIs and their bare datapaths",
		about: "What the pods' networks of products take in addition to the network of their nodes, next to the lab's bare " +
			"datapaths, and VXLAN next to routes.",
		experiments: []string{"one-machine-bare"},
		write:       writeBare,
	},
}

// text returns the page in Markdown, given the results of its experiments.
func (p page) text(all []result.Results) ([]byte, error) {
	var list []galleryExperiment
	for i, r := range all {
		c, err := compare.Compare(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.experiments[i], err)
		}
		list = append(list, galleryExperiment{p.experiments[i], r, c})
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# %s

%s

Each product has a [test cluster](../../test/cluster) with two nodes, all on one machine at the same time, and all are
measured in turn within every block. Pods have one CPU of the machine; everything else that clusters run keeps to the
other one, or gives way to them. The cluster flannel-host-gw has Multus too, which calls flannel's plugin for its pods
and gives those of macvlan their second network. Reports have every run, interval and warning. `+"`make gallery`"+`
repeats the experiments and writes this page.

| experiment | report | blocks | runs | measured | took |
|---|---|---|---|---|---|
`, p.title, wrap(p.about))
	for _, x := range list {
		e, start := x.Results.Experiment, x.Runs[0].Start.UTC().Format("2006-01-02 15:04 UTC")
		fmt.Fprintf(&b, "| [%s](%s.yaml) | [%s](%s.html) | %d | %d | %s | %s |\n",
			x.name, x.name, e.ID, x.name, e.Design.Blocks, len(x.Runs), start, wallTime(x.Results))
	}
	first := list[0].Results
	product := first.Experiment.TargetNames()[len(first.Experiment.Targets)-1]
	fmt.Fprintf(&b, "\nKnotmeter %s, Linux %s, Kubernetes %s, %s.\n", first.Experiment.Version,
		factOf(first, product, "kernel"), factOf(first, product, "kubernetes"), factOf(first, product, "cpu-model"))
	p.write(&b, list)
	writeFacts(&b, first)
	b.WriteString(galleryLimits)
	return b.Bytes(), nil
}

// wrap wraps a paragraph at 120 columns.
func wrap(text string) string { return strings.Join(prose.Wrap(text, 120), "\n") }

// wallTime returns the time from the beginning of the first run to the end of the last, rounded to minutes.
func wallTime(r result.Results) string {
	last := slices.MaxFunc(r.Runs, func(a, b result.Run) int { return a.End().Compare(b.End()) })
	return last.End().Sub(r.Runs[0].Start).Round(time.Minute).String()
}

// factOf returns a fact of a target, or "unknown".
func factOf(r result.Results, target, name string) string {
	return cmp.Or(result.FactOf(r.Facts[target], name), result.Unknown)
}

// writePaths writes a table of targets by paths for each workload, like those of published benchmarks.
func writePaths(b *bytes.Buffer, list []galleryExperiment) {
	var primaries, workloads, paths []string
	comparisons := map[string]compare.Comparison{} // by path
	for _, x := range list {
		primaries = append(primaries, x.Results.Experiment.Primaries...)
		for _, c := range x.Results.Experiment.Cases {
			path := string(c.Path)
			if comparisons[path].Schema == "" || c.Role != result.Bound {
				comparisons[path] = x.Comparison
			}
			if !slices.Contains(workloads, c.Workload) {
				workloads = append(workloads, c.Workload)
			}
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	e := list[0].Results.Experiment
	b.WriteString("\n## Nine paths\n\n" + wrap(fmt.Sprintf("Medians over the blocks. In brackets is the paired change "+
		"against %s, where it is a difference; %q is equivalent within %s, %q is undecided. Only %s were declared "+
		"beforehand; all else is exploratory. Each experiment has error rates of its own, which add up over the page: at "+
		"most %s that any verdict about its primary cases is false, and a false discovery rate of %[6]s for all else. The "+
		"column node-node is the host network; – was not measured.",
		e.Baseline, "=", unit.FormatChange(e.Design.Delta)[1:], "?", prose.Enumerate(primaries),
		stats.Percent(e.Design.Alpha))) + "\n")
	for _, w := range workloads {
		fmt.Fprintf(b, "\n### %s\n\n| | %s |\n|---%s|\n", w, strings.Join(paths, " | "), strings.Repeat("|---", len(paths)))
		for _, target := range e.TargetNames() {
			fmt.Fprintf(b, "| %s |", target)
			for _, p := range paths {
				fmt.Fprintf(b, " %s |", formatCell(comparisons[p], p+"/"+w, target))
			}
			b.WriteByte('\n')
		}
	}
}

// formatCell formats the median of a case's metric on a target, with the verdict.
func formatCell(c compare.Comparison, name, target string) string {
	at := slices.IndexFunc(c.Boxes, func(x compare.Box) bool { return x.Case == name && x.Target == target })
	if at < 0 {
		return "–"
	}
	box := c.Boxes[at]
	text := strings.ReplaceAll(unit.Format(float64(box.Median), box.Unit), " ", " ")
	r, ok := rowOf(c, name, box.Metric, c.Baseline, target)
	switch {
	case !ok:
		return text
	case r.Verdict == compare.Different:
		return text + " (" + strings.ReplaceAll(unit.FormatChange(float64(r.Change)), " ", " ") + ")"
	case r.Verdict == compare.Equivalent:
		return text + " (=)"
	}
	return text + " (?)"
}

// rowOf returns the comparison of two targets by a metric of a case; by any metric if it is empty.
func rowOf(c compare.Comparison, name, metric, baseline, target string) (compare.Row, bool) {
	for _, r := range c.Comparisons {
		if r.Case == name && (metric == "" || r.Metric == metric) && r.Baseline == baseline && r.Target == target {
			return r, true
		}
	}
	return compare.Row{}, false
}

// writeBare writes the overhead of pod networks over those of nodes, and compares VXLAN with routes.
func writeBare(b *bytes.Buffer, list []galleryExperiment) {
	x := list[0]
	e, c := x.Results.Experiment, x.Comparison
	cases := slices.DeleteFunc(slices.Clone(e.Cases), func(c result.Case) bool { return c.Role != result.Primary })
	writeAdded(b, x, cases)
	table := func(what string, cases []result.Case, name func(result.Case) string) {
		fmt.Fprintf(b, "\n| %s |", what)
		for _, x := range cases {
			fmt.Fprintf(b, " %s, %s |", name(x), x.Metric)
		}
		fmt.Fprintf(b, "\n|---%s|\n", strings.Repeat("|---", len(cases)))
	}
	b.WriteString("\n## VXLAN next to routes\n\n" + wrap(fmt.Sprintf("Between pods on different nodes: paired changes, "+
		"each with its interval. Those of all %d pairs of targets and cases, at %s each, hold at once at %s. The lab's and "+
		"Calico's pairs differ by the tunnel, with the MTU that it leaves, and flannel's by Multus too. Cilium's first row "+
		"compares two modes: next to kube-proxy its routes lead pods' packets through the node's own stack and "+
		"netfilter, and its tunnel takes them past it, so that the outer packets alone pass there ([counted]"+
		"(../evidence/lab-and-cluster.md#real-products)). In the second row both go past it, if routing by eBPF does what "+
		"Cilium documents; these two differ by kube-proxy as well.", c.Primaries,
		stats.Percent(1-e.Design.Alpha/float64(max(c.Primaries, 1))), stats.Percent(1-e.Design.Alpha))) + "\n")
	table("VXLAN, to routes", cases, func(c result.Case) string { return c.Workload })
	for _, t := range tunnels {
		fmt.Fprintf(b, "| %s, to %s |", t.vxlan, t.native)
		for _, x := range cases {
			r, _ := rowOf(c, x.Name, x.Metric, t.native, t.vxlan)
			fmt.Fprintf(b, " %s |", formatRow(r))
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n## Medians\n")
	table("target", e.Cases, func(c result.Case) string { return string(c.Path) + " " + c.Workload })
	for _, target := range e.TargetNames() {
		fmt.Fprintf(b, "| %s |", target)
		for _, x := range e.Cases {
			at := slices.IndexFunc(c.Boxes, func(y compare.Box) bool { return y.Case == x.Name && y.Target == target })
			if at < 0 {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(b, " %s |", unit.Format(float64(c.Boxes[at].Median), c.Boxes[at].Unit))
		}
		b.WriteByte('\n')
	}
}

// formatRow formats a change with its interval and verdict.
func formatRow(r compare.Row) string {
	if r.Blocks == 0 {
		return "–"
	}
	verdict := string(r.Verdict)
	if r.Verdict == compare.Different {
		verdict = string(r.Direction)
	}
	if !r.CI.Bounded() {
		return fmt.Sprintf("%s, no interval: %s", unit.FormatChange(float64(r.Change)), verdict)
	}
	return fmt.Sprintf("%s [%+.1f, %+.1f] %s", unit.FormatChange(float64(r.Change)), 100*r.CI.Lo, 100*r.CI.Hi, verdict)
}

// writeFacts writes a table of the facts of each target.
func writeFacts(b *bytes.Buffer, r result.Results) {
	fmt.Fprintf(b, "\n## What was measured\n\nFacts as the program found them:\n\n| | %s |\n|---%s|\n",
		strings.Join(shownFacts, " | "), strings.Repeat("|---", len(shownFacts)))
	for _, target := range r.Experiment.TargetNames() {
		if result.FactOf(r.Facts[target], "cni") == "" {
			continue // the lab
		}
		fmt.Fprintf(b, "| %s |", target)
		for _, name := range shownFacts {
			fmt.Fprintf(b, " %s |", factOf(r, target, name))
		}
		b.WriteByte('\n')
	}
}

const galleryLimits = `
## What one machine cannot tell

- No packet leaves the machine: there is no NIC, no cable and no switch, so nothing is said of offloads of hardware, of
  line rate, or of a tunnel that a NIC would carry. Only what the kernel and the products do for each packet is seen.
- Both ends of every case share one CPU, so throughput is the inverse of the work of both sides together. Two machines
  reach more, and what is limited by one side there is not the same.
- Products run with the settings of the test clusters, by which they come up; none was tuned. Encryption, policies and
  IPv6 are off. With kube-proxy next to it Cilium balances Services itself for pods.
- macvlan has no Services and no paths to its own node.
- The order of the targets is that of the experiment and is no ranking.
`
