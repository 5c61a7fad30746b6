package audit

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Rule checks for one kind of implausible numbers.
type Rule struct {
	Name     string   `json:"rule"`
	Severity Severity `json:"severity"`
	About    string   `json:"about"` // what it expects and its thresholds; a sentence
	Why      string   `json:"why"`   // why that matters; a sentence
	More     string   `json:"more,omitempty"`

	// A rule has one of these functions: checkRun checks a single run, checkAll the whole evidence. Both return the
	// number of things that they could check.
	checkRun func(r measuredRun) (findings []Finding, checked int)
	checkAll func(e *records) (findings []Finding, checked int)
}

// A measuredRun is a run with its planned case and the facts of its target.
type measuredRun struct {
	*result.Run
	planned     result.Case
	targetFacts []result.Fact // nil if unknown
}

// An Examination is the result of one rule.
type Examination struct {
	Rule     Rule
	Checked  int // number of things that the rule could check
	Findings []Finding
}

// rules lists all rules, those that find errors first.
var rules = sortBySeverity(
	slices.Concat(runRules, runWarnings, meshRules, pathRules, outputRules, copyRules, textRules, volumeRules, jobRules,
		claimRules))

func sortBySeverity(rules []Rule) []Rule {
	slices.SortStableFunc(rules, func(a, b Rule) int {
		return slices.Index(Severities, a.Severity) - slices.Index(Severities, b.Severity)
	})
	return rules
}

// Check applies all rules. The findings are in the order of rules, and within a rule in the order of runs. Invalid
// runs, and those of attempts that were repeated, are skipped.
func Check(e Evidence) []Finding {
	found := []Finding{}
	for _, x := range Examine(e) {
		found = append(found, x.Findings...)
	}
	return found
}

// CheckRun applies the rules for single runs to a run of a case. Facts of its target are not known here, so rules that
// need them, such as the one on the rate of the link, find nothing.
func CheckRun(of result.Case, r result.Run) []Finding {
	found := []Finding{}
	for _, rule := range rules {
		if rule.checkRun == nil {
			continue
		}
		findings, _ := rule.checkRun(measuredRun{&r, of, nil})
		found = append(found, rule.complete(findings, &r)...)
	}
	return found
}

// Examine applies all rules as [Check] does, and returns the findings and the number of things checked for each rule.
func Examine(e Evidence) []Examination {
	recs := newRecords(e)
	var all []Examination
	for _, rule := range rules {
		x := Examination{Rule: rule}
		if rule.checkAll != nil {
			var findings []Finding
			findings, x.Checked = rule.checkAll(recs)
			x.Findings = rule.complete(findings, &result.Run{})
		}
		for _, r := range recs.runs {
			if rule.checkRun != nil {
				findings, checked := rule.checkRun(measuredRun{r, recs.planned[r.Case], e.Facts[r.Target]})
				x.Checked += checked
				x.Findings = append(x.Findings, rule.complete(findings, r)...)
			}
		}
		x.Findings = mergeRuns(x.Findings)
		all = append(all, x)
	}
	return all
}

// complete fills in the fields that follow from the rule and the run.
func (rule Rule) complete(findings []Finding, r *result.Run) []Finding {
	for i := range findings {
		f := &findings[i]
		f.Rule, f.Why, f.More = rule.Name, rule.Why, rule.More
		if f.Severity == "" {
			f.Severity = rule.Severity
		}
		if r.ID == "" {
			continue
		}
		f.Case, f.Target, f.Runs = r.Case, r.Target, []string{r.ID}
		if f.Place == "" {
			f.Place = PlaceOf(r, f.Metric)
		}
	}
	return findings
}

// mergeRuns combines findings of one rule about the same case, target and metric of several runs: it keeps the first,
// with the runs of all of them. Cells of tables stay separate, because each has its place.
func mergeRuns(found []Finding) []Finding {
	type key struct{ caseName, target, metric, place string }
	at := map[key]int{}
	var merged []Finding
	for _, f := range found {
		k := key{f.Case, f.Target, f.Metric, f.Place}
		i, again := at[k]
		if len(f.Runs) == 0 || !again {
			if len(f.Runs) > 0 {
				at[k] = len(merged)
			}
			merged = append(merged, f)
			continue
		}
		merged[i].Runs = append(merged[i].Runs, f.Runs...)
	}
	for i, f := range merged {
		if len(f.Runs) > 1 && f.Place == "" {
			merged[i].Saw = fmt.Sprintf("%s %d runs are alike.", f.Saw, len(f.Runs))
		}
	}
	return merged
}

// A records holds the evidence, indexed.
type records struct {
	Evidence
	runs   []*result.Run // valid, of the last attempt of their block
	gaps   []*result.Run // places of tables without figures
	byCase map[string]map[string][]*result.Run
	cases  []string                 // of runs, in the order in which they first appear
	tables []string                 // in the order in which they first appear
	cells  map[string][]*result.Run // cells of each table
	// planned has the plan's cases by name, the first of each. rank has the positions of the plan's targets as negative
	// numbers, so that targets outside of the plan, with rank 0, come last.
	planned map[string]result.Case
	rank    map[string]int
	caseOn  map[pathAndWorkload]string // names of the plan's cases
}

// A pathAndWorkload identifies a case by its path and workload.
type pathAndWorkload struct {
	path     result.Path
	workload string
}

func newRecords(e Evidence) *records {
	recs := &records{
		Evidence: e, byCase: map[string]map[string][]*result.Run{}, cells: map[string][]*result.Run{},
		planned: map[string]result.Case{}, rank: map[string]int{}, caseOn: map[pathAndWorkload]string{},
	}
	if recs.Seen == nil {
		recs.Seen = &Seen{}
	}
	if recs.Seen.outputs == nil {
		recs.Seen.outputs = map[string]seenOutput{}
	}
	for i, t := range e.Experiment.Targets {
		recs.rank[t.Name] = i - len(e.Experiment.Targets)
	}
	for _, c := range e.Experiment.Cases {
		if _, twice := recs.planned[c.Name]; !twice {
			recs.planned[c.Name] = c
			recs.caseOn[pathAndWorkload{result.Path(c.Path), c.Workload}] = c.Name
		}
	}
	last, number := result.LastAttempts(e.Runs), map[[2]string]int{}
	for _, r := range e.Runs {
		number[[2]string{r.Case, r.Target}]++
	}
	recs.runs = make([]*result.Run, 0, len(e.Runs)) // growing a large slice would waste memory
	for i := range e.Runs {
		r := &e.Runs[i]
		if !r.Valid() || !last(r) {
			continue
		}
		if r.Fact(FactGap) != "" {
			recs.gaps = append(recs.gaps, r)
			continue
		}
		recs.runs = append(recs.runs, r)
		if recs.byCase[r.Case] == nil {
			recs.byCase[r.Case] = map[string][]*result.Run{}
			recs.cases = append(recs.cases, r.Case)
		}
		if recs.byCase[r.Case][r.Target] == nil {
			recs.byCase[r.Case][r.Target] = make([]*result.Run, 0, number[[2]string{r.Case, r.Target}])
		}
		recs.byCase[r.Case][r.Target] = append(recs.byCase[r.Case][r.Target], r)
		if t := r.Fact(FactTable); t != "" {
			if recs.cells[t] == nil {
				recs.tables = append(recs.tables, t)
			}
			recs.cells[t] = append(recs.cells[t], r)
		}
	}
	return recs
}

// A pair is a case on a target.
type pair struct{ name, target string }

// pairs iterates over all cases on all targets with runs.
func (recs *records) pairs() iter.Seq2[pair, []*result.Run] {
	return func(yield func(pair, []*result.Run) bool) {
		for _, name := range recs.cases {
			for _, target := range recs.targets(name) {
				if !yield(pair{name, target}, recs.byCase[name][target]) {
					return
				}
			}
		}
	}
}

// targets lists the targets of a case, in the order of the plan, then of their names.
func (recs *records) targets(caseName string) []string {
	names := slices.Sorted(maps.Keys(recs.byCase[caseName]))
	slices.SortStableFunc(names, func(a, b string) int { return recs.rank[a] - recs.rank[b] })
	return names
}
