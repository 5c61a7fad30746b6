package compare

import (
	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Schema is the schema of a [Comparison] as JSON.
const Schema = "knotmeter/comparison/v1"

// A Verdict is what the data allow to be said about a difference.
type Verdict string

// The verdicts. There is no "no difference": either the difference is shown to be smaller than what
// matters, or it is not.
const (
	Different  Verdict = "different"  // the interval excludes 0
	Equivalent Verdict = "equivalent" // the interval lies within ± delta, whether or not it excludes 0
	Undecided  Verdict = "undecided"  // neither
)

// A Direction is which way the target differs from the baseline. It is given where the interval
// excludes 0, with a verdict of equivalent too, and is None everywhere else.
type Direction string

// The directions.
const (
	BetterThan Direction = "better"
	WorseThan  Direction = "worse"
	None       Direction = "none"
)

// A Comparison is everything that an experiment says. All its slices and maps are never nil. Its
// JSON form is knotmeter/comparison/v1.
type Comparison struct {
	Schema     string  `json:"schema"`
	Experiment string  `json:"experiment"` // id; of several experiments, all ids
	Paired     bool    `json:"paired"`     // by blocks; of several experiments false
	Seed       uint64  `json:"seed"`
	Baseline   string  `json:"baseline"`
	Alpha      float64 `json:"alpha"`     // error probability of all primary verdicts together
	Delta      float64 `json:"delta"`     // smallest difference that matters, as a fraction
	Primaries  int     `json:"primaries"` // comparisons planned: primary cases x pairs of targets that are compared
	// Placebos are the targets that are the baseline again under another name: what they seem to
	// differ by is noise.
	Placebos []string `json:"placebos"`

	Comparisons []Row                `json:"comparisons"` // primaries first, then in the order of the plan
	NotMeasured []result.NotMeasured `json:"not_measured"`
	// AlsoDiffers lists, by target, the facts that differ from the baseline's besides the name; a
	// fact that one side could not find out is listed as "name (unknown)".
	AlsoDiffers map[string][]string     `json:"also_differs"`
	Differences map[string][]Difference `json:"differences"` // the same with both values
	Findings    []audit.Finding         `json:"findings"`

	// Medians are what was measured, where nothing is compared, as with a single target; left out of the JSON otherwise.
	Medians []Median `json:"medians,omitempty"`

	Groups []Group `json:"groups"` // by case and metric, with more than two targets
	Boxes  []Box   `json:"boxes"`  // the runs of each case's own metric, by target
	// Slopes say how metrics go with a number in which targets differ, left out of the JSON where none do.
	Slopes []Slope `json:"slopes,omitempty"`
	Gates  []Gated `json:"gates"` // what became of each gate
	// Prices say what performance costs, where prices were given; left out of the JSON otherwise.
	Prices []Priced `json:"prices,omitempty"`
	// Limits are the most of what was measured that facts state, left out of the JSON where there are none.
	Limits []Limit `json:"limits,omitempty"`
	// Subjects are the targets in groups of cases, left out of the JSON where there are none.
	Subjects []Subject `json:"subjects,omitempty"`
	// Objectives that others have set for what was measured, left out of the JSON where there are none.
	Objectives []Objective `json:"objectives,omitempty"`
	// Leaks say how often something passed that was forbidden, left out of the JSON where nothing was.
	Leaks []Leak `json:"leaks,omitempty"`

	// Sessions that have runs, where an experiment was resumed; left out of the JSON otherwise.
	Sessions []Session `json:"sessions,omitempty"`
	// Visits that found their target changed, where targets were measured in turn; left out of the JSON otherwise.
	Visits []Visit `json:"visits,omitempty"`

	Targets  []TargetRuns `json:"targets"`
	Headline string       `json:"headline"` // one sentence: what came out, in plain words
	Summary  string       `json:"summary"`  // one sentence: how many primary comparisons came out how
	Scope    string       `json:"scope"`    // one sentence: of what the verdicts speak, and of what not
	Warnings []string     `json:"warnings"` // of the experiment as a whole; sentences
}

// A Row is one metric of one case on one target, against the baseline.
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
	// Change is the target against the baseline as a fraction: the Hodges-Lehmann estimate of the
	// log ratio, turned back. It needs not equal the ratio of the medians.
	Change    Number    `json:"change"`
	CI        Interval  `json:"ci"`
	Delta     float64   `json:"delta"`
	Verdict   Verdict   `json:"verdict"`
	Direction Direction `json:"direction"`
	Warnings  []string  `json:"warnings"` // sentences

	Level    float64 `json:"level"`          // asked of the interval: 1 - alpha/primaries, or 1 - alpha if exploratory
	Attained float64 `json:"level_attained"` // what a rank interval of so many blocks really has; at least Level
	P        Number  `json:"p"`              // two-sided, of no change
	Q        Number  `json:"q"`              // Benjamini-Hochberg adjusted P among the exploratory; null of a primary
	// BlocksNeeded estimates the blocks in all that an undecided comparison would take; else 0.
	BlocksNeeded      int         `json:"blocks_needed,omitempty"`
	BaselineQuartiles [2]Number   `json:"baseline_quartiles"` // first and third
	TargetQuartiles   [2]Number   `json:"target_quartiles"`
	UpperBound        *UpperBound `json:"upper_bound,omitempty"` // nil where none was measured
	Shift             *Shift      `json:"shift,omitempty"`       // only where values of 0 leave no ratio
	// Spread is the standard deviation of a pair's log ratio, as a fraction; Detectable the smallest
	// change, as a fraction, that the planned blocks show with a probability of 80 % at that spread.
	Spread     Number `json:"spread"`
	Detectable Number `json:"detectable"`
	Pairs      []Pair `json:"pairs"`    // in order of blocks; none if unpaired
	Sentence   string `json:"sentence"` // the row in plain words, for the first screen

	outside float64 // p of the change being delta or more
	step    float64 // that the metric moves in, as a fraction; 0 if that is not known
	// atLastLook says that the case had all the blocks that it may have.
	atLastLook bool
}

// A Group is the targets of a case in the order of a metric, best first, with letters: two targets
// that share a letter cannot be told apart at the group's level.
type Group struct {
	Case     string        `json:"case"`
	Metric   string        `json:"metric"`
	Unit     unit.Unit     `json:"unit"`
	Better   metric.Better `json:"better"`
	Level    float64       `json:"level"`    // confidence of each pair's interval, at least
	Declared bool          `json:"declared"` // comparing all pairs was planned; else the letters are exploratory
	Members  []Member      `json:"members"`
	// Conclusion says in words what the letters allow: which target is best, which cannot be told
	// apart, which is last; and nothing more.
	Conclusion string `json:"conclusion"`
}

// A Member is a target in a [Group].
type Member struct {
	Target  string `json:"target"`
	Blocks  int    `json:"blocks"`
	Median  Number `json:"median"`
	Letters string `json:"letters"` // "a", "ab" …
}

// A Box is the order statistics of the runs of a metric on a target. The whiskers are the lowest and
// highest values within 1.5 interquartile ranges of the quartiles (Tukey, Exploratory Data Analysis,
// 1977); what is beyond them is in Beyond.
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

// An Outcome is what became of a gate.
type Outcome string

// The outcomes. Open means that the data decide neither way.
const (
	Passed Outcome = "passed"
	Failed Outcome = "failed"
	Open   Outcome = "open"
)

// Gated is a gate applied to one comparison that it matches, or to none, which leaves it open.
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

// A Pair is the two values of one block.
type Pair struct {
	Block    int    `json:"block"`
	Baseline Number `json:"baseline"`
	Target   Number `json:"target"`
	Change   Number `json:"change"` // as a fraction; null where the ratio has no logarithm
}

// A Shift is the difference target - baseline in the metric's unit, for values that have no ratio.
type Shift struct {
	Estimate Number   `json:"estimate"`
	CI       Interval `json:"ci"` // at the row's level
}

// An UpperBound is the reference of a case: what the path could reach at most, measured in the same blocks, and in the
// same results directory, on the underlay of each side. The medians are equal where both have the same.
type UpperBound struct {
	Case         string `json:"case"`
	Median       Number `json:"median"`        // that holds for the baseline
	TargetMedian Number `json:"target_median"` // that holds for the target
	// The shares of it that baseline and target reach, by their medians: value / bound of a metric
	// that is better higher, bound / value of one that is better lower. 1 is all of it.
	BaselineShare Number `json:"baseline_share"`
	TargetShare   Number `json:"target_share"`
	// ExceededBy is by how much the fastest target of the case exceeds it, as a fraction, where that is more than delta:
	// then it is no limit here, and nothing is a share of it. Faster is that target.
	ExceededBy Number `json:"exceeded_by,omitempty"`
	Faster     string `json:"faster,omitempty"`
}

// A Difference is a fact that is not the same on the baseline and on a target.
type Difference struct {
	Fact     string `json:"fact"`
	Baseline string `json:"baseline"`
	Target   string `json:"target"`
}

// TargetRuns counts the runs of a target.
type TargetRuns struct {
	Name    string   `json:"name"`
	Spec    string   `json:"spec"`
	Runs    int      `json:"runs"`    // all, of all cases, repeated ones too
	Invalid int      `json:"invalid"` // of these
	Reasons []Reason `json:"reasons"` // why, most frequent first
}

// A Reason is why runs were invalid, and how many.
type Reason struct {
	Text string `json:"reason"`
	Runs int    `json:"runs"`
}

// Against returns the baseline that each target is compared with in the first place. In one experiment that is its own;
// of several, each target may have another.
func (c Comparison) Against() map[string]string {
	against := map[string]string{}
	for _, r := range c.Comparisons {
		if _, known := against[r.Target]; !known && (!c.Paired || r.Baseline == c.Baseline) {
			against[r.Target] = r.Baseline
		}
	}
	return against
}

// Primary returns the rows that a verdict was planned for.
func (c Comparison) Primary() []Row { return c.role(result.Primary) }

// Exploratory returns the other rows.
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
