package audit

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Rule is one way in which numbers can be implausible.
type Rule struct {
	Name     string   `json:"rule"`
	Severity Severity `json:"severity"`
	About    string   `json:"about"` // what it looks at and from where on it speaks; a sentence
	Why      string   `json:"why"`   // that matters; a sentence
	More     string   `json:"more,omitempty"`

	// A rule has one of the two: one judges a run by itself, all judges the evidence as a whole. Both return how many
	// things there were to look at.
	one func(r measured) (saw []Finding, looked int)
	all func(e *records) (saw []Finding, looked int)
}

// A measured is a run with what it is of.
type measured struct {
	*result.Run
	of     result.Case
	target []result.Fact // nil where they are not known
}

// An Examination is what came of one rule.
type Examination struct {
	Rule     Rule
	Looked   int // things that the rule could judge: 0 means that it had nothing to look at
	Findings []Finding
}

// rules are all rules, those that find errors first.
var rules = gravestFirst(
	slices.Concat(runRules, runDoubts, pathRules, outputRules, copyRules, textRules, volumeRules, jobRules, claimRules))

func gravestFirst(rules []Rule) []Rule {
	slices.SortStableFunc(rules, func(a, b Rule) int {
		return slices.Index(Severities, a.Severity) - slices.Index(Severities, b.Severity)
	})
	return rules
}

// Check applies all rules. The findings are in the order of rules, and within a rule in the order
// of the runs. Runs that are invalid, or of an attempt that was repeated, are not looked at.
func Check(e Evidence) []Finding {
	found := []Finding{}
	for _, x := range Examine(e) {
		found = append(found, x.Findings...)
	}
	return found
}

// CheckRun applies the rules that one run of a case can fail alone. Facts of its target are not known here: what
// needs them, such as the rate of the link, only [Check] sees.
func CheckRun(of result.Case, r result.Run) []Finding {
	found := []Finding{}
	for _, rule := range rules {
		if rule.one == nil {
			continue
		}
		saw, _ := rule.one(measured{&r, of, nil})
		found = append(found, rule.complete(saw, &r)...)
	}
	return found
}

// Examine is [Check] with what each rule had to look at.
func Examine(e Evidence) []Examination {
	recs := newRecords(e)
	var all []Examination
	for _, rule := range rules {
		x := Examination{Rule: rule}
		if rule.all != nil {
			var saw []Finding
			saw, x.Looked = rule.all(recs)
			x.Findings = rule.complete(saw, &result.Run{})
		}
		for _, r := range recs.runs {
			if rule.one != nil {
				saw, looked := rule.one(measured{r, recs.planned[r.Case], e.Facts[r.Target]})
				x.Looked += looked
				x.Findings = append(x.Findings, rule.complete(saw, r)...)
			}
		}
		x.Findings = merge(x.Findings)
		all = append(all, x)
	}
	return all
}

// complete fills in what the rule and the run know.
func (rule Rule) complete(saw []Finding, r *result.Run) []Finding {
	for i := range saw {
		f := &saw[i]
		f.Rule, f.Why, f.More = rule.Name, rule.Why, rule.More
		if f.Severity == "" {
			f.Severity = rule.Severity
		}
		if r.ID == "" {
			continue
		}
		f.Case, f.Target, f.Runs = r.Case, r.Target, []string{r.ID}
		if f.Place == "" {
			f.Place = placeOf(r, f.Metric)
		}
	}
	return saw
}

// merge makes one finding of those of the same rule about many runs of the same numbers; it tells
// the first and counts the rest. Cells of tables stay apart: each has its place.
func merge(found []Finding) []Finding {
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

// records is evidence, sorted so that it can be found.
type records struct {
	Evidence
	runs   []*result.Run // valid, of the last attempt of their block
	said   []*result.Run // sentences of a text
	byCase map[string]map[string][]*result.Run
	cases  []string                 // of runs, in the order in which they first appear
	tables []string                 // likewise
	cells  map[string][]*result.Run // of each table
	// The plan's cases by name, the first of each, and where its targets stand in it, below 0.
	planned map[string]result.Case
	rank    map[string]int
	on      map[way]string // the names of the plan's cases
}

// A way is what a workload is measured on.
type way struct {
	path     targets.Path
	workload string
}

func newRecords(e Evidence) *records {
	recs := &records{
		Evidence: e, byCase: map[string]map[string][]*result.Run{}, cells: map[string][]*result.Run{},
		planned: map[string]result.Case{}, rank: map[string]int{}, on: map[way]string{},
	}
	for i, t := range e.Experiment.Targets {
		recs.rank[t.Name] = i - len(e.Experiment.Targets)
	}
	for _, c := range e.Experiment.Cases {
		if _, twice := recs.planned[c.Name]; !twice {
			recs.planned[c.Name] = c
			recs.on[way{targets.Path(c.Path), c.Workload}] = c.Name
		}
	}
	last, number := result.LastAttempts(e.Runs), map[[2]string]int{}
	for _, r := range e.Runs {
		number[[2]string{r.Case, r.Target}]++
	}
	recs.runs = make([]*result.Run, 0, len(e.Runs)) // of many runs, what growing wastes is much
	for i := range e.Runs {
		r := &e.Runs[i]
		if !r.Valid() || !last(r) {
			continue
		}
		if r.Fact(FactSaid) != "" {
			recs.said = append(recs.said, r)
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

// pairs are all cases on all targets that have runs.
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
