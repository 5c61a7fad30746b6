package compare

import (
	"reflect"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A Warning is a caveat about a comparison or a row: a code, and the arguments of the sentence that package report
// writes for it. The comment of a code names the arguments that are set.
type Warning struct {
	Code Code `json:"code"`
	// In holds the labels of the experiments that have the warning, if several are compared and not all have it.
	In []string `json:"in,omitempty"`

	Cases       []string        `json:"cases,omitempty"`
	Targets     []string        `json:"targets,omitempty"`
	Metrics     []string        `json:"metrics,omitempty"`
	Units       []unit.Unit     `json:"units,omitempty"`
	Experiments []string        `json:"experiments,omitempty"` // labels
	Runs        []string        `json:"runs,omitempty"`        // ids
	Rules       []string        `json:"rules,omitempty"`       // of the audit
	Tool        string          `json:"tool,omitempty"`        // that made imported numbers
	Loops       []string        `json:"loops,omitempty"`       // open or closed, of the baseline and the target
	ID          string          `json:"id,omitempty"`          // of an experiment
	Values      []PropertyValue `json:"values,omitempty"`      // in which experiments differ
	Unmatched   []Unmatched     `json:"unmatched,omitempty"`
	Counts      []TargetCount   `json:"counts,omitempty"` // of runs or sites, by target

	Count   int     `json:"count,omitempty"`
	Of      int     `json:"of,omitempty"`     // all that Count is a part of, or a second number like Count
	Needed  int     `json:"needed,omitempty"` // the number from which on there is no warning
	Block   int     `json:"block,omitempty"`
	Attempt int     `json:"attempt,omitempty"`
	Level   float64 `json:"level,omitempty"`   // confidence
	Seconds float64 `json:"seconds,omitempty"` // budget
	Verdict Verdict `json:"verdict,omitempty"` // of the interval alone
	Spread  Number  `json:"spread,omitempty"`  // standard deviation of the change, as a fraction
	Factor  Number  `json:"factor,omitempty"`  // by which an interval is wider
	Step    Number  `json:"step,omitempty"`    // of the metric, as a fraction
	Delta   Number  `json:"delta,omitempty"`   // smallest difference that matters, as a fraction
	After   Number  `json:"after,omitempty"`   // change where the target came after the baseline, as a fraction
	Before  Number  `json:"before,omitempty"`  // change where it came before

	// Recorded is a warning that runs, sites or an experiment recorded; Varies reports that others of its kind have other
	// texts.
	Recorded *result.Warning `json:"recorded,omitempty"`
	Varies   bool            `json:"varies,omitempty"`
}

// A TargetCount is a part of the runs or sites of a target.
type TargetCount struct {
	Target string `json:"target"`
	Count  int    `json:"count"`
	Of     int    `json:"of"`
}

// A PropertyValue is a value of a property in which experiments differ, with the labels of those that have it.
type PropertyValue struct {
	Value       string   `json:"value"`
	Experiments []string `json:"experiments"`
}

// An Unmatched is a metric of a case that is compared with nothing.
type Unmatched struct {
	Case   string    `json:"case"`
	Metric string    `json:"metric"`
	Unit   unit.Unit `json:"unit"`
}

// A Code identifies what a warning is about.
type Code string

// The codes of warnings about a row.
const (
	NoPairedRuns         Code = "no-paired-runs"         // Metrics
	OneRun               Code = "one-run"                //
	FewOfPlanned         Code = "few-of-planned"         // Count, Of: blocks with a valid run on both sides
	FewOfMeasured        Code = "few-of-measured"        // likewise, with looks
	BudgetSpent          Code = "budget-spent"           // Count, Of: blocks; Seconds
	EndedEarly           Code = "ended-early"            // Count, Of: blocks
	StoppedEarly         Code = "stopped-early"          //
	LoopsDiffer          Code = "loops-differ"           // Loops
	Unpaced              Code = "unpaced"                //
	GeneratorLimit       Code = "generator-limit"        // Counts
	SharedGeneratorLimit Code = "shared-generator-limit" // Counts
	InvalidSharesDiffer  Code = "invalid-shares-differ"  // Counts
	ManyInvalid          Code = "many-invalid"           // Counts
	OrderOfRuns          Code = "order-of-runs"          // Targets: target, baseline; After, Before
	OrderOfVisits        Code = "order-of-visits"        // likewise
	RunsWarn             Code = "runs-warn"              // Recorded, Varies; Counts unless all runs have it
	RunsWarnMore         Code = "runs-warn-more"         // Count
	MetricNotShared      Code = "metric-not-shared"      // Metrics
	FewRuns              Code = "few-runs"               // Count, Of: of the baseline and the target; Needed
	Drift                Code = "drift"                  //
	RunsDepend           Code = "runs-depend"            // Factor
	RunUnitDiffers       Code = "run-unit-differs"       // Runs, Metrics; Units: of the run, of others
	BlockUnitDiffers     Code = "block-unit-differs"     // Block, Metrics; Units: of the baseline, of the target
	RunsUnusable         Code = "runs-unusable"          // Runs, Metrics
	BlocksUnusable       Code = "blocks-unusable"        // Count, Metrics
	PairsPastLook        Code = "pairs-past-look"        // Count, Of: pairs
	WideSpread           Code = "wide-spread"            // Spread
	OnlyZeros            Code = "only-zeros"             //
	NoRatio              Code = "no-ratio"               // Count, Of: values
	StepUnknown          Code = "step-unknown"           //
	CoarseStep           Code = "coarse-step"            // Step, Delta
	OneOfMany            Code = "one-of-many"            // Verdict, Count: exploratory comparisons
	BlocksExcluded       Code = "blocks-excluded"        // Count, Rules
	RunsExcluded         Code = "runs-excluded"          // Count, Targets, Rules
	AuditDoubts          Code = "audit-doubts"           // Rules
)

// The codes of remarks about an estimate.
const (
	NotFinite        = Code(stats.NotFinite)        // Count, Of
	NoPairs          = Code(stats.NoPairs)          //
	EmptySample      = Code(stats.EmptySample)      //
	PastLastLook     = Code(stats.PastLastLook)     // Count, Of
	NeverBounded     = Code(stats.NeverBounded)     // Count, Level
	Unbounded        = Code(stats.Unbounded)        // Count, Needed, Level
	UnboundedSamples = Code(stats.UnboundedSamples) // Count, Of, Needed, Level
	AllSame          = Code(stats.AllSame)          // Count
	ManyZeros        = Code(stats.ManyZeros)        // Count, Of
)

// The codes of warnings about an experiment as a whole. Rows have ClosedLoop too.
const (
	ClosedLoop         Code = "closed-loop"          //
	Parallel           Code = "parallel"             //
	InTurn             Code = "in-turn"              //
	OneMachine         Code = "one-machine"          //
	Imported           Code = "imported"             // Tool
	BeforeLastBlock    Code = "before-last-block"    // Count, Of: blocks; Seconds: budget, if there is one
	ExperimentWarns    Code = "experiment-warns"     // Recorded
	SitesWarn          Code = "sites-warn"           // Counts, Recorded, Varies
	UnplannedRuns      Code = "unplanned-runs"       // Runs
	RunTwice           Code = "run-twice"            // Block, Attempt, Cases, Targets, Runs
	OneSidedInvalid    Code = "one-sided-invalid"    // Cases, Counts
	OneSidedInvalidIn  Code = "one-sided-invalid-in" // Cases, without counts because there are many
	UnmatchedMetrics   Code = "unmatched-metrics"    // Unmatched
	Trend              Code = "trend"                // Cases
	NotPaired          Code = "not-paired"           // Count: experiments
	ToolsDiffer        Code = "tools-differ"         // Values
	VersionsDiffer     Code = "versions-differ"      // Values
	DurationsDiffer    Code = "durations-differ"     // Values
	WarmupsDiffer      Code = "warmups-differ"       // Values
	AlphasDiffer       Code = "alphas-differ"        // Values
	DeltasDiffer       Code = "deltas-differ"        // Values
	DefinitionsDiffer  Code = "definitions-differ"   // Cases
	SameID             Code = "same-id"              // Experiments, ID
	OtherTool          Code = "other-tool"           // Experiments, Tool
	OnlyInOne          Code = "only-in-one"          // Experiments, Cases
	MissingInFirst     Code = "missing-in-first"     // Experiments, Cases
	NoNamesake         Code = "no-namesake"          // Targets
	MetricChosen       Code = "metric-chosen"        // Count: cases; Metrics: the chosen one, then the planned ones
	AllPairsChosen     Code = "all-pairs-chosen"     //
	GatesChosen        Code = "gates-chosen"         //
	DocumentIsAbridged Code = "document-is-abridged" // Count, Of: rows; Needed: most rows of a list
)

// Standing reports whether the warning holds for every experiment of its kind, and not for this one in particular.
func (w Warning) Standing() bool {
	return len(w.In) == 0 && (w.Code == ClosedLoop || w.Code == OneMachine || w.Code == InTurn)
}

// Equal reports whether two warnings have the same code and arguments.
func (w Warning) Equal(other Warning) bool { return reflect.DeepEqual(w, other) }

func (r *Row) warn(w Warning) { r.Warnings = append(r.Warnings, w) }

// remark adds the remarks of an estimate to the warnings.
func (r *Row) remark(e stats.Estimate) {
	for _, x := range e.Remarks {
		if r.awaited > 0 && x.Kind == stats.Unbounded {
			continue // the number of blocks is planned: see BeforeLastBlock
		}
		w := Warning{Code: Code(x.Kind), Count: x.Count, Of: x.Of, Needed: x.Needed}
		switch w.Code {
		case NeverBounded, Unbounded, UnboundedSamples:
			w.Level = e.Level
		}
		r.warn(w)
	}
}
