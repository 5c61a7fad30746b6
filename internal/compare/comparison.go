package compare

import (
	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Schema names the JSON format of a [Comparison].
const Schema = "knotmeter/comparison/v1"

// A Verdict is the conclusion that the data allow about a difference.
type Verdict string

// The verdicts. There is no "no difference": either the difference is shown to be smaller than what matters, or it is
// not.
const (
	Different  Verdict = "different"  // the interval excludes 0
	Equivalent Verdict = "equivalent" // the interval lies within ± delta, whether or not it excludes 0
	Undecided  Verdict = "undecided"  // neither
)

// A Direction is the way in which a target differs from the baseline. It is None if the target is undecided, or
// equivalent with an interval that includes 0. An exploratory row has a direction only if its adjusted p is at most
// alpha too.
type Direction string

// The directions.
const (
	BetterThan Direction = "better"
	WorseThan  Direction = "worse"
	None       Direction = "none"
)

// A Comparison holds all results of an experiment. Its slices and maps are never nil, except for those that are left
// out of the JSON when empty. Its JSON form is knotmeter/comparison/v1.
type Comparison struct {
	Schema     string  `json:"schema"`
	Experiment string  `json:"experiment"` // id; all ids if several experiments are compared
	Paired     bool    `json:"paired"`     // by blocks; false for imported runs and several experiments
	Seed       uint64  `json:"seed"`
	Baseline   string  `json:"baseline"`
	Alpha      float64 `json:"alpha"`     // error probability of all primary verdicts together
	Delta      float64 `json:"delta"`     // smallest difference that matters, as a fraction
	Primaries  int     `json:"primaries"` // primary comparisons planned: primary cases x compared pairs of targets
	// Placebos are the targets with the baseline's own specification under another label: any difference of theirs is
	// noise.
	Placebos []string `json:"placebos"`

	Comparisons []Row                `json:"comparisons"` // primaries first, then in the order of the plan
	NotMeasured []result.NotMeasured `json:"not_measured"`
	// AlsoDiffers lists, by target, the other facts that differ from the baseline's. A fact that is unknown on one side
	// is listed as "name (unknown)".
	AlsoDiffers map[string][]string     `json:"also_differs"`
	Differences map[string][]Difference `json:"differences"` // the same with both values
	Findings    []audit.Finding         `json:"findings"`

	// Medians holds the median of each metric if nothing is compared, as with a single target; otherwise left out of
	// the JSON.
	Medians []Median `json:"medians,omitempty"`

	Groups []Group `json:"groups"` // by case and metric, with more than two targets
	Boxes  []Box   `json:"boxes"`  // the runs of each case's own metric, by target
	// Slopes holds how metrics change with a numeric option in which targets differ; left out of the JSON if there is
	// none.
	Slopes []Slope `json:"slopes,omitempty"`
	Gates  []Gated `json:"gates"` // the outcome of each gate
	// Prices holds the cost of a unit of performance, if prices were given; otherwise left out of the JSON.
	Prices []Priced `json:"prices,omitempty"`
	// Limits compares measurements with limits of resources that facts state; left out of the JSON if there are none.
	Limits []Limit `json:"limits,omitempty"`
	// Subjects holds the outcome of targets in groups of cases; left out of the JSON if there are none.
	Subjects []GroupOutcome `json:"subjects,omitempty"`
	// Objectives holds the published service level objectives for what was measured; left out of the JSON if there are
	// none.
	Objectives []Objective `json:"objectives,omitempty"`
	// Leaks holds how often forbidden traffic passed; left out of the JSON if no case measured it.
	Leaks []Leak `json:"leaks,omitempty"`

	// Sessions lists the sessions with runs, if the experiment was resumed; otherwise left out of the JSON.
	Sessions []Session `json:"sessions,omitempty"`
	// Visits lists the visits that found their target changed, if targets were measured in turn; otherwise left out of
	// the JSON.
	Visits []Visit `json:"visits,omitempty"`

	Targets  []TargetRuns `json:"targets"`
	Headline string       `json:"headline"` // one sentence: the outcome in plain words
	Summary  string       `json:"summary"`  // one sentence: the number of primary comparisons by verdict
	Scope    string       `json:"scope"`    // one sentence: which targets, machines and times the verdicts cover
	Warnings []Warning    `json:"warnings"` // about the experiment as a whole
}

// A Row holds one metric of one case on one target, compared with the baseline.
type Row struct {
	Case           string        `json:"case"`
	Metric         string        `json:"metric"`
	Unit           unit.Unit     `json:"unit"`
	Better         metric.Better `json:"better"`
	Role           result.Role   `json:"role"` // primary or exploratory
	Target         string        `json:"target"`
	Baseline       string        `json:"baseline"`
	Blocks         int           `json:"blocks"`          // valid on both sides; unpaired: the smaller number of runs
	BaselineMedian Number        `json:"baseline_median"` // over these blocks
	TargetMedian   Number        `json:"target_median"`
	// Change is the target relative to the baseline, as a fraction: the Hodges-Lehmann estimate of the log ratio,
	// converted back. It may differ from the ratio of the medians.
	Change    Number    `json:"change"`
	CI        Interval  `json:"ci"`
	Verdict   Verdict   `json:"verdict"`
	Direction Direction `json:"direction"`
	Warnings  []Warning `json:"warnings"`

	Level    float64 `json:"level"`          // requested: 1 - alpha/primaries, or 1 - alpha if exploratory
	Attained float64 `json:"level_attained"` // actual confidence of the rank interval, at least Level
	P        Number  `json:"p"`              // two-sided, for the hypothesis of no change
	Q        Number  `json:"q"`              // Benjamini-Hochberg adjusted P of exploratory rows; else null
	// BlocksNeeded estimates the total number of blocks after which an undecided comparison would have a verdict;
	// otherwise 0.
	BlocksNeeded      int         `json:"blocks_needed,omitempty"`
	BaselineQuartiles [2]Number   `json:"baseline_quartiles"` // first and third
	TargetQuartiles   [2]Number   `json:"target_quartiles"`
	UpperBound        *UpperBound `json:"upper_bound,omitempty"` // nil if no reference was measured
	Shift             *Shift      `json:"shift,omitempty"`       // nil unless values of 0 have no ratio
	// Spread is the standard deviation of a pair's log ratio, as a fraction; Detectable is the smallest change, as a
	// fraction, that the planned blocks detect with a probability of 80 % at that spread.
	Spread     Number `json:"spread"`
	Detectable Number `json:"detectable"`
	Pairs      []Pair `json:"pairs"`    // in order of blocks; empty if unpaired
	Sentence   string `json:"sentence"` // the row in plain words, for the first screen

	equivalenceP float64 // p of the hypothesis that the change is delta or more, either way
	step         float64 // resolution of the metric as a fraction; 0 if unknown
	// atLastLook reports whether the case had the maximum number of blocks.
	atLastLook bool
	// drifts reports whether the runs of an unpaired row rise or fall from run to run, so that it has no verdict.
	drifts  bool
	awaited int // planned blocks, if the experiment ended before them and has no earlier look; otherwise 0
}

// A Group holds the targets of a case in the order of a metric, best first, with letters: targets that share a letter
// cannot be told apart at the group's level.
type Group struct {
	Case     string        `json:"case"`
	Metric   string        `json:"metric"`
	Unit     unit.Unit     `json:"unit"`
	Better   metric.Better `json:"better"`
	Level    float64       `json:"level"`    // minimum confidence of each pair's interval
	Declared bool          `json:"declared"` // all pairs were planned; otherwise the letters are exploratory
	Members  []Member      `json:"members"`
	// Conclusion expresses in words what the letters show: which targets are best or last, and which cannot be told
	// apart.
	Conclusion string `json:"conclusion"`
}

// A Member is a target in a [Group].
type Member struct {
	Target  string `json:"target"`
	Blocks  int    `json:"blocks"`
	Median  Number `json:"median"`
	Letters string `json:"letters"` // "a", "ab" …
}

// A Box holds the order statistics of a metric's runs on a target. The whiskers are the lowest and highest values
// within 1.5 interquartile ranges of the quartiles (Tukey, Exploratory Data Analysis, 1977); values outside them are in
// Beyond.
type Box struct {
	Case    string    `json:"case"`
	Metric  string    `json:"metric"`
	Unit    unit.Unit `json:"unit"`
	Target  string    `json:"target"`
	Runs    int       `json:"runs"`
	Lowest  Number    `json:"lowest"` // whisker
	Q1      Number    `json:"q1"`
	Median  Number    `json:"median"`
	Q3      Number    `json:"q3"`
	Highest Number    `json:"highest"` // whisker
	Beyond  []Number  `json:"beyond"`
}

// An Outcome is the result of a gate.
type Outcome string

// The outcomes. Open means that the data decide neither way.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	Open   Outcome = "open"
)

// A Gated is a gate applied to a metric of one case on one target. A gate that matches nothing is open, without case
// and target.
type Gated struct {
	Gate     string   `json:"gate"` // as given
	Case     string   `json:"case"`
	Target   string   `json:"target"`
	Metric   string   `json:"metric"`
	Level    float64  `json:"level"` // confidence of the interval that decides
	CI       Interval `json:"ci"`    // of the change, or of the median in the metric's unit
	Outcome  Outcome  `json:"outcome"`
	Sentence string   `json:"sentence"`
}

// A Pair holds the two values of one block.
type Pair struct {
	Block    int    `json:"block"`
	Baseline Number `json:"baseline"`
	Target   Number `json:"target"`
	Change   Number `json:"change"` // as a fraction; null unless both values are above 0
}

// A Shift is the difference target - baseline in the metric's unit, for values that have no ratio.
type Shift struct {
	Estimate Number   `json:"estimate"`
	CI       Interval `json:"ci"` // at the row's level
}

// An UpperBound is the node-to-node reference of a case, measured in the same experiment on the underlay of each side.
// The medians are equal if both sides share an underlay.
type UpperBound struct {
	Case         string `json:"case"`
	Median       Number `json:"median"`        // reference of the baseline
	TargetMedian Number `json:"target_median"` // reference of the target
	// BaselineShare and TargetShare are the shares of the reference that the medians reach: value / reference if higher
	// is better, reference / value if lower is better. 1 is all of it.
	BaselineShare Number `json:"baseline_share"`
	TargetShare   Number `json:"target_share"`
	// ExceededBy is how far the fastest target of the case exceeds the reference, as a fraction, if that is more than
	// delta; then the reference is no limit, and no shares are given. Faster is that target.
	ExceededBy Number `json:"exceeded_by,omitempty"`
	Faster     string `json:"faster,omitempty"`
}

// A Difference is a fact whose values differ between the baseline and a target.
type Difference struct {
	Fact     string `json:"fact"`
	Baseline string `json:"baseline"`
	Target   string `json:"target"`
}

// TargetRuns counts the runs of a target.
type TargetRuns struct {
	Name    string   `json:"name"`
	Spec    string   `json:"spec"`
	Runs    int      `json:"runs"`    // runs of all cases, including repeated ones
	Invalid int      `json:"invalid"` // number of invalid runs among them
	Reasons []Reason `json:"reasons"` // reasons for invalid runs, most frequent first
}

// A Reason is a reason for invalid runs, with their number.
type Reason struct {
	Text string `json:"reason"`
	Runs int    `json:"runs"`
}

// Against returns, for each target, the baseline that it is primarily compared with. In one experiment that is the
// experiment's own; with several experiments the baselines may differ.
func (c Comparison) Against() map[string]string {
	against := map[string]string{}
	for _, r := range c.Comparisons {
		if _, known := against[r.Target]; !known && (!c.Paired || r.Baseline == c.Baseline) {
			against[r.Target] = r.Baseline
		}
	}
	return against
}

// Primary returns the rows with a planned verdict.
func (c Comparison) Primary() []Row { return c.role(result.Primary) }

// Exploratory returns the rows without a planned verdict.
func (c Comparison) Exploratory() []Row { return c.role(result.Exploratory) }

func (c Comparison) role(role result.Role) []Row {
	rows := []Row{}
	for _, r := range c.Comparisons {
		if r.Role == role {
			rows = append(rows, r)
		}
	}
	return rows
}
