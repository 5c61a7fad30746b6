package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const causesHead = `# How often the right cause comes first

Experiments whose right answer is known: the two targets differ in a fault that was put into one of them, in a decoy, a
setting that does nothing there, or in nothing (A/A). In the lab both are ` + "`lab:native`" + ` (for a quota
` + "`local:`" + `) with an option more for one, of random strength: eight blocks, runs of 200 ms, and the trials of
` + "`--explain`" + `. On clusters they are real networks side by side on one machine: eleven blocks, runs of 300 ms
with ` + "`profile=yes`" + `. Nothing was tuned to held-out faults, decoys and pairs.

A cause is right if its rule is one that names the fault. Only experiments by one set of rules are counted together;
these are by the rules %s. Intervals are exact (Clopper and Pearson) at 95 %%.

    make explain-accuracy MINUTES=40
    make explain-accuracy-cluster MINUTES=40

The commands go on where they were, and begin nothing after so many minutes. On clusters a pair takes about five
minutes, and the networks must have been compiled (` + "`make gallery`" + ` compiles them too).
bench/rates/causes.ndjson and causes-cluster.ndjson have each experiment.
`

// causesPage returns the page about the experiments of both logs by the present rules, in Markdown.
func causesPage(done []faultExperiment, verdicts []clusterVerdict) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, causesHead, "`"+explain.Rules+"`")
	present := keep(done, func(t faultExperiment) bool { return t.Rules == explain.Rules })
	onClusters := keep(verdicts, func(v clusterVerdict) bool { return v.Rules == explain.Rules })
	b.WriteString("\n## In the lab\n\n")
	labTable(&b, present)
	b.WriteString("\n### By fault\n\n")
	faultTable(&b, present)
	b.WriteString("\n## On clusters\n\n")
	clusterTable(&b, onClusters)
	b.WriteString("\n### By pair\n\n")
	pairTable(&b, onClusters)
	b.WriteString("\n## Experiments\n\n")
	sources(&b, present, onClusters, len(done)-len(present)+len(verdicts)-len(onClusters))
	b.WriteString(causesFoot)
	return b.Bytes()
}

const causesFoot = `
The cases of a pair share its two clusters, while the intervals take them as independent. The pair "calico, direct and
VXLAN" had the right cause first in 0 of 4, until facts told that nodes in one subnet need no tunnel; it was then
measured again.

What is not injected, and why: the limit of the table of connections belongs to the whole machine, not to a lab's
namespaces. Of a short backlog single connections are a second late, which a median does not show: the kernel's counter
does. A program that takes CPU time would take it from the unharmed target too. The test cluster has no network that
encrypts.
`

// keep returns the elements that match.
func keep[T any](list []T, matches func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !matches(x) })
}

// shareOrDash formats a part of a whole with its interval; a dash if the whole is 0.
func shareOrDash(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return strings.TrimSpace(formatShare(part, whole, ""))
}

// A shares is a table of shares with their wholes.
type shares struct{ w *tabwriter.Writer }

func newShares(b io.Writer) shares {
	s := shares{tabwriter.NewWriter(b, 0, 0, 1, ' ', 0)}
	fmt.Fprintf(s.w, "| What\t| Share\t|\n|---\t|---\t|\n")
	return s
}

func (s shares) row(what string, part, whole int) {
	fmt.Fprintf(s.w, "| %s\t| %s\t|\n", what, shareOrDash(part, whole))
}

// labTable writes all shares of experiments in the lab.
func labTable(b *bytes.Buffer, done []faultExperiment) {
	injected := keep(done, func(t faultExperiment) bool { return len(t.Wanted) > 0 })
	usable := keep(injected, func(t faultExperiment) bool { return !t.Missing })
	none := keep(done, func(t faultExperiment) bool { return t.Fault == noFault && !t.Missing })
	decoyed := keep(done, func(t faultExperiment) bool { return t.isDecoy() && !t.Missing })
	decided := func(list []faultExperiment) []faultExperiment { return keep(list, faultExperiment.isExplainable) }
	first := func(t faultExperiment) bool { return slices.Contains(t.Wanted, t.firstCause()) }
	named := func(t faultExperiment) bool { return t.isExplainable() && haveOneOf(t.Causes, t.Wanted) }
	misled := func(t faultExperiment) bool { return haveOneOf(t.Causes, t.Decoys) }
	some := func(t faultExperiment) bool { return len(t.Causes) > 0 }
	s := newShares(b)
	s.row("right cause first, of all injected faults", countIf(usable, first), len(usable))
	s.row("right cause first, where the harmed target came out worse", countIf(usable, first), len(decided(usable)))
	s.row("right cause named, where the harmed target came out worse", countIf(usable, named), len(decided(usable)))
	for _, held := range []bool{false, true} {
		these := keep(usable, func(t faultExperiment) bool { return t.HeldOut == held })
		kind := map[bool]string{false: "known faults", true: "held-out faults"}[held]
		s.row("right cause first, "+kind, countIf(these, first), len(these))
		s.row("right cause first, "+kind+", where worse", countIf(these, first), len(decided(these)))
	}
	for _, kind := range []evidenceKind{byCounters, byLayers, byTrial} {
		these := keep(decided(usable), func(t faultExperiment) bool { return shownBy(t.Fault) == kind })
		s.row("right cause first, shown by "+string(kind)+", where worse", countIf(these, first), len(these))
	}
	all, wrong := 0, 0
	for _, t := range decided(usable) {
		for _, c := range t.Causes {
			all++
			if !slices.Contains(t.Wanted, c) {
				wrong++
			}
		}
	}
	s.row("supported causes beside an injected fault that do not name it, its effects included", wrong, all)
	beside := keep(usable, func(t faultExperiment) bool { return len(t.Decoys) > 0 })
	s.row("a decoy's cause supported, next to a fault", countIf(beside, misled), len(beside))
	s.row("a decoy's cause supported, alone", countIf(decoyed, misled), len(decoyed))
	s.row("any cause supported, decoy alone", countIf(decoyed, some), len(decoyed))
	s.row("different, decoy alone", len(decided(decoyed)), len(decoyed))
	s.row("any cause supported, of all A/A", countIf(none, some), len(none))
	s.row("different, of all A/A", len(decided(none)), len(none))
	s.row("any cause supported, of the A/A that were different", countIf(decided(none), some), len(decided(none)))
	missing := keep(done, func(t faultExperiment) bool { return t.Missing })
	s.row("not measured, of all experiments", len(missing), len(done))
	s.w.Flush()
	reasons := map[string]int{}
	for _, t := range missing {
		reasons[t.Fault+": "+t.Reason]++
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(b, "\n%s\n", wrap(fmt.Sprintf("Not measured, %s: %s", unit.Plural(reasons[reason], "time"), reason)))
	}
}

// shownBy returns what shows a fault.
func shownBy(name string) evidenceKind {
	i := slices.IndexFunc(faults, func(f fault) bool { return f.name == name })
	if i < 0 {
		return ""
	}
	return faults[i].shown
}

// faultTable writes a line for each fault and decoy.
func faultTable(b *bytes.Buffer, done []faultExperiment) {
	w := tabwriter.NewWriter(b, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| Fault\t| Experiments\t| Worse\t| Right cause first\t| Otherwise first\t|\n")
	fmt.Fprintf(w, "|---\t|---\t|---\t|---\t|---\t|\n")
	for _, f := range faults {
		others := map[string]int{}
		all, worse, first := 0, 0, 0
		for _, t := range keep(done, func(t faultExperiment) bool { return t.Fault == f.name }) {
			all++
			if t.isExplainable() {
				worse++
			}
			if slices.Contains(t.Wanted, t.firstCause()) {
				first++
			} else {
				others[t.firstCause()]++
			}
		}
		name := f.name
		switch {
		case len(f.rules) == 0:
			name += " (decoy)"
		case slices.ContainsFunc(heldOutFaults, func(h fault) bool { return h.name == f.name }):
			name += " (held out)"
		}
		right := fmt.Sprint(first)
		if len(f.rules) == 0 {
			right = "–"
		}
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %s\t| %s\t|\n", name, all, worse, right, formatCounts(others))
	}
	w.Flush()
}

// right reports whether a verdict's first cause names the known difference.
func (v clusterVerdict) right() bool {
	return len(v.Causes) > 0 && slices.Contains(v.Wanted, v.Causes[0])
}

// clusterTable writes all shares of verdicts on clusters.
func clusterTable(b *bytes.Buffer, all []clusterVerdict) {
	measured := keep(all, func(v clusterVerdict) bool { return v.Verdict != "" })
	s := newShares(b)
	some := func(v clusterVerdict) bool { return len(v.Causes) > 0 }
	wrong := func(v clusterVerdict) bool { return haveOneOf(v.Causes, v.Forbidden) }
	known := keep(measured, func(v clusterVerdict) bool { return !v.Same })
	same := keep(measured, func(v clusterVerdict) bool { return v.Same })
	for _, held := range []bool{false, true} {
		these := keep(known, func(v clusterVerdict) bool { return v.HeldOut == held && len(v.Wanted) > 0 })
		kind := map[bool]string{false: "known pairs", true: "held-out pairs"}[held]
		s.row("right cause first, "+kind+", where the difference has a name",
			countIf(these, clusterVerdict.right), len(these))
		s.row("right cause named, likewise",
			countIf(these, func(v clusterVerdict) bool { return haveOneOf(v.Causes, v.Wanted) }), len(these))
	}
	different := keep(known, func(v clusterVerdict) bool { return v.Worse != "" })
	s.row("different, of the verdicts on networks that differ", len(different), len(known))
	s.row("a cause supported, of these", countIf(different, some), len(different))
	forbidden := keep(measured, func(v clusterVerdict) bool { return len(v.Forbidden) > 0 })
	s.row("a cause supported that cannot be", countIf(forbidden, wrong), len(forbidden))
	s.row("any cause supported, of all verdicts without a difference", countIf(same, some), len(same))
	s.row("different, of all verdicts without a difference",
		countIf(same, func(v clusterVerdict) bool { return v.Worse != "" }), len(same))
	s.row("no verdict, of all cases", len(all)-len(measured), len(all))
	s.w.Flush()
}

// pairTable writes a line for each pair.
func pairTable(b *bytes.Buffer, all []clusterVerdict) {
	w := tabwriter.NewWriter(b, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| Pair\t| Verdicts\t| Different\t| Right cause first\t| Cannot be\t| First causes\t|\n")
	fmt.Fprintf(w, "|---\t|---\t|---\t|---\t|---\t|---\t|\n")
	for _, p := range clusterPairs {
		these := keep(all, func(v clusterVerdict) bool { return v.Pair == p.name && v.Verdict != "" })
		firsts := map[string]int{}
		for _, v := range these {
			switch {
			case len(v.Causes) > 0:
				firsts[v.Causes[0]]++
			case v.Worse != "":
				firsts["no cause"]++
			}
		}
		name, right := p.name, "–"
		if p.heldOut {
			name += " (held out)"
		}
		if wanted := countIf(these, func(v clusterVerdict) bool { return len(v.Wanted) > 0 }); wanted > 0 {
			right = fmt.Sprintf("%d of %d", countIf(these, clusterVerdict.right), wanted)
		}
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %s\t| %d\t| %s\t|\n", name, len(these),
			countIf(these, func(v clusterVerdict) bool { return v.Worse != "" }), right,
			countIf(these, func(v clusterVerdict) bool { return haveOneOf(v.Causes, v.Forbidden) }), formatCounts(firsts))
	}
	w.Flush()
}

// sources writes which versions of the program measured, and what is not counted.
func sources(b *bytes.Buffer, done []faultExperiment, verdicts []clusterVerdict, others int) {
	counts := map[string]int{}
	for _, t := range done {
		counts[t.Version+", in the lab"]++
	}
	for _, v := range verdicts {
		counts[v.Version+", verdicts on clusters"]++
	}
	if len(counts) == 0 {
		b.WriteString("None has been measured by these rules yet.\n")
	}
	for _, version := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "- %d by %s\n", counts[version], version)
	}
	if others > 0 {
		fmt.Fprintf(b, "\n%s of the logs are by other rules, and are not counted.\n", unit.Plural(others, "line"))
	}
}

// formatCounts formats counts by descending number, as in "retransmissions 3, no cause 1".
func formatCounts(counts map[string]int) string {
	names := slices.Collect(maps.Keys(counts))
	slices.SortFunc(names, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}
