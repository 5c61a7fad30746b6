package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Part holds the results of one of several experiments that are compared with each other.
type Part struct {
	result.Results
	Label string // unique among the parts; distinguishes their targets, runs and warnings
	Named bool   // the label replaces the target's name if there is only one target
}

// name returns the name of a target of the part, unique among all parts.
func (p Part) name(target string) string {
	if all := p.Experiment.Targets; p.Named && len(all) == 1 && all[0].Name == target {
		return p.Label
	}
	return target + " (" + p.Label + ")"
}

// A Joined holds the results of several experiments as those of one, with all their targets, under names with the
// labels of their parts, and all their cases. A target has only the cases of its own experiment.
type Joined struct {
	result.Results
	parts []Part // with the unique names of their targets
}

// Join combines the results of experiments. It takes the smallest alpha and delta, and all gates. An error wraps
// [ErrExperiment].
func Join(parts ...Part) (Joined, error) {
	j := Joined{Results: result.Results{Facts: map[string][]result.Fact{}}}
	for _, p := range renameSynonyms(parts) {
		if err := check(p.Experiment); err != nil {
			return Joined{}, fmt.Errorf("%s: %w", p.Label, err)
		}
		p = p.renamed()
		j.parts, j.Runs, j.Sites = append(j.parts, p), append(j.Runs, p.Runs...), append(j.Sites, p.Sites...)
		maps.Copy(j.Facts, p.Facts)
	}
	runs := j.Runs
	for i := range j.parts { // the parts share the joined runs
		n := len(j.parts[i].Runs)
		j.parts[i].Runs, runs = runs[:n:n], runs[n:]
	}
	j.Experiment = j.experiment()
	return j, check(j.Experiment)
}

// renameSynonyms returns the parts with imported cases under their synonyms, if another part has a case of that name
// and no part has a case of the original name without a synonym. Verdicts are then about that case's metric.
func renameSynonyms(parts []Part) []Part {
	plain := map[string]result.Case{} // cases without a synonym
	for _, p := range parts {
		for _, c := range p.Experiment.Cases {
			if c.Synonym == "" {
				plain[c.Name] = c
			}
		}
	}
	all := slices.Clone(parts)
	for i, p := range parts {
		names := map[string]string{}
		cases := slices.Clone(p.Experiment.Cases)
		for k, c := range cases {
			to, is := plain[c.Synonym]
			_, first := plain[c.Name]
			if _, taken := p.Experiment.Case(c.Synonym); !is || first || taken {
				continue
			}
			names[c.Name] = to.Name
			to.Role, to.Definition = c.Role, c.Definition
			cases[k] = to
		}
		all[i].Experiment.Cases, all[i].Runs = cases, slices.Clone(p.Runs)
		for k, r := range p.Runs {
			all[i].Runs[k].Case = cmp.Or(names[r.Case], r.Case)
		}
	}
	return all
}

// renamed returns the part with the unique names of its targets, the baseline first.
func (p Part) renamed() Part {
	e := p.Experiment
	e.Baseline, e.Targets, e.NotMeasured = p.name(e.Baseline), nil, nil
	for _, t := range p.Experiment.Targets {
		t.Name, t.Alias = p.name(t.Name), t.Name
		if t.Name == e.Baseline {
			e.Targets = slices.Insert(e.Targets, 0, t)
		} else {
			e.Targets = append(e.Targets, t)
		}
	}
	for _, n := range p.Experiment.NotMeasured {
		targets := []string{n.Target}
		if n.EveryTarget() {
			targets = p.Experiment.TargetNames()
		}
		for _, target := range targets {
			e.NotMeasured = append(e.NotMeasured, result.NotMeasured{Target: p.name(target), Case: n.Case, Reason: n.Reason})
		}
	}
	to := p
	to.Experiment, to.Facts = e, p.facts(p.Facts)
	to.Runs, to.Sites, to.Sessions = slices.Clone(p.Runs), slices.Clone(p.Sites), slices.Clone(p.Sessions)
	for i := range to.Runs {
		to.Runs[i].Target, to.Runs[i].Experiment = p.name(p.Runs[i].Target), p.Label
	}
	for i := range to.Sites {
		to.Sites[i].Target = p.name(p.Sites[i].Target)
	}
	for i := range to.Sessions {
		to.Sessions[i].Facts = p.facts(p.Sessions[i].Facts)
	}
	to.Switches = slices.Clone(p.Switches)
	for i := range to.Switches {
		if of := p.Switches[i].Target; of != "" {
			to.Switches[i].Target = p.name(of)
		}
	}
	return to
}

// facts returns the facts by the unique names of their targets.
func (p Part) facts(of map[string][]result.Fact) map[string][]result.Fact {
	all := map[string][]result.Fact{}
	for target, facts := range of {
		all[p.name(target)] = facts
	}
	return all
}

// experiment returns the combined plan of all parts, without blocks and warnings, which belong to single parts.
func (j Joined) experiment() result.Experiment {
	first := j.parts[0].Experiment
	e := result.Experiment{
		Schema: first.Schema, Baseline: first.Baseline, Cases: j.cases(),
		Design: result.Design{Kind: "several experiments, not paired", Alpha: first.Design.Alpha, Delta: first.Design.Delta},
	}
	var ids, versions, suites, tools []string
	for _, p := range j.parts {
		x := p.Experiment
		ids, versions, suites, tools = append(ids, x.ID), append(versions, x.Version), append(suites, x.Suite),
			append(tools, x.Tool)
		e.Targets, e.NotMeasured = append(e.Targets, x.Targets...), append(e.NotMeasured, x.NotMeasured...)
		e.Gates = append(e.Gates, x.Gates...)
		e.Design.Alpha = math.Min(e.Design.Alpha, x.Design.Alpha)
		e.Design.Delta = math.Min(e.Design.Delta, x.Design.Delta)
	}
	e.ID, e.Gates = strings.Join(ids, " "), distinct(e.Gates)
	e.Version, e.Suite, e.Tool = joinDistinct(versions), joinDistinct(suites), joinDistinct(tools)
	e.NotMeasured = mergeNotMeasured(e.NotMeasured, e.TargetNames())
	for _, rc := range e.Cases {
		if rc.Role != result.Bound && len(j.labelsWith(rc.Name)) > 1 {
			e.NotMeasured = append(e.NotMeasured, j.targetsWithout(rc.Name)...)
		}
	}
	return e
}

// mergeNotMeasured combines entries that cover all targets for the same reason into one.
func mergeNotMeasured(list []result.NotMeasured, targets []string) []result.NotMeasured {
	var merged []result.NotMeasured
	for _, n := range list {
		all := !slices.ContainsFunc(targets, func(name string) bool {
			return !slices.Contains(list, result.NotMeasured{Target: name, Case: n.Case, Reason: n.Reason})
		})
		if all {
			n.Target = "*"
		}
		if !slices.Contains(merged, n) {
			merged = append(merged, n)
		}
	}
	return merged
}

// cases returns the cases of all parts. A case is primary if it is primary in all parts that have it, with the same
// metric.
func (j Joined) cases() []result.Case {
	var all []result.Case
	for _, p := range j.parts {
		for _, y := range p.Experiment.Cases {
			i := slices.IndexFunc(all, func(x result.Case) bool { return x.Name == y.Name })
			if i < 0 {
				all = append(all, y)
				continue
			}
			x := &all[i]
			same := x.Role == y.Role && (x.Role == result.Bound || x.Metric == y.Metric)
			if !same {
				x.Role = result.Exploratory
			}
		}
	}
	return all
}

// labelsWith returns the labels of the parts that have a case.
func (j Joined) labelsWith(name string) []string {
	var labels []string
	for _, p := range j.parts {
		if _, has := p.Experiment.Case(name); has {
			labels = append(labels, p.Label)
		}
	}
	return labels
}

// targetsWithout returns the case as not measured on the targets of the parts that do not have it.
func (j Joined) targetsWithout(name string) []result.NotMeasured {
	var list []result.NotMeasured
	for _, p := range j.parts {
		if _, has := p.Experiment.Case(name); has {
			continue
		}
		for _, target := range p.Experiment.TargetNames() {
			list = append(list, result.NotMeasured{Target: target, Case: name, Reason: p.Label + " does not have this case"})
		}
	}
	return list
}

// targetPairs returns the comparisons of the targets: with the target of the same name in the first part, or else with
// the first part's baseline. If the design asks for all pairs, the other pairs follow.
func (j Joined) targetPairs() []targetPair {
	var all []targetPair
	first := j.parts[0].Experiment
	for _, p := range j.parts[1:] {
		for _, target := range p.Experiment.Targets {
			v := targetPair{first.Baseline, target.Name}
			for _, x := range first.Targets {
				if x.Alias == target.Alias {
					v.baseline = x.Name
				}
			}
			all = append(all, v)
		}
	}
	if j.Experiment.Design.AllPairs {
		for _, v := range plannedPairs(j.Experiment) {
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
	}
	return all
}

// runTable indexes the runs of each part separately: attempts, audit and warnings of one part do not affect another.
func (j Joined) runTable() *runTable {
	t := &runTable{e: j.Experiment, targetPairs: j.targetPairs(), byTarget: map[string]*runTable{},
		unmatched: map[Unmatched]bool{},
		all:       map[string]map[string][]*result.Run{}, closedLoop: true}
	for _, p := range j.parts {
		part := auditedRuns(numberRuns(p.Results))
		for _, target := range p.Experiment.TargetNames() {
			t.byTarget[target] = part
		}
		for name, runs := range part.all {
			if t.all[name] == nil {
				t.all[name] = map[string][]*result.Run{}
			}
			maps.Copy(t.all[name], runs)
		}
		t.findings = append(t.findings, part.findings...)
		t.closedLoop = t.closedLoop && part.closedLoop
	}
	for _, rc := range t.e.Cases {
		for _, v := range t.targetPairs {
			if rc.Role == result.Primary && t.hasCase(rc, v) {
				t.primaries++
			}
		}
	}
	return t
}

// Compare compares the targets of several experiments, unpaired: by Mann-Whitney and its shift interval on the
// logarithms. Each target is compared with the first part's target of the same name, or else with the first part's
// baseline; all pairs are compared if the design asks for that. Imported runs are compared with ours if case, metric
// and unit are the same. Drift between the times of measurement is part of every difference; the warnings mention it
// and everything without a counterpart. An error wraps [ErrExperiment].
func (j Joined) Compare() (Comparison, error) {
	p, err := newAnalysisPlan(j.Experiment)
	if err != nil {
		return Comparison{}, err
	}
	t := j.runTable()
	c := newComparison(j.Experiment)
	c.Placebos = []string{} // a target of another experiment is no A/A control
	for _, p := range j.parts {
		c.Sessions, c.Visits = append(c.Sessions, p.sessions()...), append(c.Visits, p.visits()...)
	}
	c.fill(t, p, j.Facts, j.warnings(t), append(j.partWarnings(t), j.unmatched(t)...))
	return c, nil
}

// sessions returns the sessions of a part, under its label.
func (p Part) sessions() []Session {
	list := sessionsOf(p.Results)
	for i := range list {
		list[i].Experiment = p.Label
		if list[i].Sentence != "" {
			list[i].Sentence = "Experiment " + p.Label + ": " + list[i].Sentence
		}
	}
	return list
}

// visits returns the visits of a part that found their target changed, under its label.
func (p Part) visits() []Visit {
	list := visitsOf(p.Results)
	for i := range list {
		list[i].Experiment = p.Label
		list[i].Sentence = "Experiment " + p.Label + ": " + list[i].Sentence
	}
	return list
}

// warnings describes how the experiments differ in design and tools.
func (j Joined) warnings(t *runTable) []Warning {
	list := append([]Warning{{Code: NotPaired, Count: len(j.parts)}}, j.settingsThatDiffer()...)
	for _, rc := range t.e.Cases {
		_, definitions := j.valuesByLabel(func(e result.Experiment) string {
			of, _ := e.Case(rc.Name)
			return of.Definition
		})
		if len(definitions) > 1 {
			list = append(list, Warning{Code: DefinitionsDiffer, Cases: []string{rc.Name}})
		}
	}
	ids, labels := j.valuesByLabel(func(e result.Experiment) string { return e.ID })
	for _, id := range ids {
		if same := labels[id]; len(same) > 1 {
			list = append(list, Warning{Code: SameID, Experiments: same, ID: id})
		}
	}
	tools, labels := j.valuesByLabel(func(e result.Experiment) string { return e.Imported })
	for _, tool := range tools {
		list = append(list, Warning{Code: OtherTool, Experiments: labels[tool], Tool: tool})
	}
	return list
}

// settingsThatDiffer returns a warning for each property in which the experiments differ. Imported runs have no
// durations.
func (j Joined) settingsThatDiffer() []Warning {
	number := func(of func(result.Design) float64) func(result.Experiment) string {
		return func(e result.Experiment) string { return fmt.Sprint(of(e.Design)) }
	}
	ours := func(of func(result.Design) float64) func(result.Experiment) string {
		return func(e result.Experiment) string {
			if e.Imported != "" {
				return ""
			}
			return number(of)(e)
		}
	}
	var list []Warning
	for _, property := range []struct {
		code Code
		of   func(result.Experiment) string
	}{
		{ToolsDiffer, func(e result.Experiment) string { return e.Tool }},
		{VersionsDiffer, func(e result.Experiment) string { return e.Version }},
		{DurationsDiffer, ours(func(d result.Design) float64 { return d.Duration })},
		{WarmupsDiffer, ours(func(d result.Design) float64 { return d.Warmup })},
		{AlphasDiffer, number(func(d result.Design) float64 { return d.Alpha })},
		{DeltasDiffer, number(func(d result.Design) float64 { return d.Delta })},
	} {
		values, labels := j.valuesByLabel(property.of)
		if len(values) < 2 {
			continue
		}
		w := Warning{Code: property.code}
		for _, v := range values {
			w.Values = append(w.Values, PropertyValue{v, labels[v]})
		}
		list = append(list, w)
	}
	return list
}

// valuesByLabel lists the distinct values of a property of the experiments, with the labels of the parts that have
// each.
func (j Joined) valuesByLabel(of func(result.Experiment) string) (values []string, labels map[string][]string) {
	labels = map[string][]string{}
	for _, p := range j.parts {
		if v := of(p.Experiment); v != "" {
			values, labels[v] = append(values, v), append(labels[v], p.Label)
		}
	}
	return distinct(values), labels
}

// partWarnings returns the warnings of the parts with their labels; warnings that all parts share appear once,
// unlabelled.
func (j Joined) partWarnings(t *runTable) []Warning {
	var list []Warning
	var labels [][]string
	for _, p := range j.parts {
		part := t.tableOf(p.Experiment.Baseline)
		for _, w := range slices.Concat(experimentWarnings(p.Experiment), part.warnings, part.sharedWarnings.warnings(),
			siteWarnings(p.Sites), part.designWarnings()) {
			i := slices.IndexFunc(list, w.Equal)
			if i < 0 {
				i, list, labels = len(list), append(list, w), append(labels, nil)
			}
			if !slices.Contains(labels[i], p.Label) {
				labels[i] = append(labels[i], p.Label)
			}
		}
	}
	var kept []Warning
	for i, w := range list {
		switch {
		case len(labels[i]) == len(j.parts):
			kept = append(kept, w)
		case w.Code != ClosedLoop: // rows repeat it
			w.In = labels[i]
			kept = append(kept, w)
		}
	}
	return kept
}

// unmatched lists the cases and targets that are compared with nothing.
func (j Joined) unmatched(t *runTable) []Warning {
	var list []Warning
	only, alone := map[string][]string{}, []string{}
	for _, rc := range j.Experiment.Cases {
		labels := j.labelsWith(rc.Name)
		isCompared := slices.ContainsFunc(t.targetPairs, func(v targetPair) bool { return t.hasCase(rc, v) })
		switch {
		case len(labels) == 1:
			only[labels[0]] = append(only[labels[0]], rc.Name)
		case !isCompared && rc.Role != result.Bound:
			alone = append(alone, rc.Name)
		}
	}
	for _, p := range j.parts {
		if names := only[p.Label]; len(names) > 0 {
			list = append(list, Warning{Code: OnlyInOne, Experiments: []string{p.Label}, Cases: names})
		}
	}
	if len(alone) > 0 {
		list = append(list, Warning{Code: MissingInFirst, Experiments: []string{j.parts[0].Label}, Cases: alone})
	}
	var targets []string
	for _, name := range j.Experiment.TargetNames() {
		if !slices.ContainsFunc(t.targetPairs, func(v targetPair) bool { return v.baseline == name || v.target == name }) {
			targets = append(targets, name)
		}
	}
	if len(targets) > 0 {
		list = append(list, Warning{Code: NoNamesake, Targets: targets})
	}
	return list
}

// joinDistinct joins the distinct texts that are not empty with commas.
func joinDistinct(texts []string) string {
	return strings.Join(slices.DeleteFunc(distinct(texts), func(s string) bool { return s == "" }), ",")
}

// distinct returns the texts in their order, without repetitions.
func distinct(texts []string) []string {
	var list []string
	for _, text := range texts {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
