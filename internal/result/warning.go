package result

import "strings"

// A Warning is what a reader should know about a run, or a gate that it failed. It is data until it is rendered: what
// is said of it goes by its code and metric, never by its text.
type Warning struct {
	Code   Code   `json:"code"`
	Metric string `json:"metric,omitempty"` // the only one that it is about
	Text   string `json:"text"`             // a sentence without full stop
}

// A Code tells kinds of warnings apart, whatever numbers and names their texts have.
type Code string

// The codes of warnings and gates.
const (
	Failed         Code = "failed"          // there is no measurement; the text is the error
	ToolReports    Code = "tool-reports"    // another tool's own words
	PlaceAiling    Code = "place-ailing"    // something happened to the places during the run
	PlacesLeft     Code = "places-left"     // they could not be removed
	NotFinite      Code = "not-finite"      // a value that is no number
	FewSamples     Code = "few-samples"     // a percentile takes more
	MetricMissing  Code = "metric-missing"  // the verdict is about one that the run does not have
	AuditError     Code = "audit-"          // with the name of the rule that found an error
	AgentFailed    Code = "agent-failed"    //
	ShortWindow    Code = "short-window"    //
	StoppedEarly   Code = "stopped-early"   //
	Throttled      Code = "throttled"       // by the agent's cgroup
	LimitGiven     Code = "limit-given"     // of CPU time, by the user
	GeneratorLate  Code = "generator-late"  // it did not keep to its plan
	RateMissed     Code = "rate-missed"     // by a sender of datagrams
	GeneratorLimit Code = "generator-limit" // and not what was measured
	CPULimit       Code = "cpu-limit"       // of the client's threads
	CPUStolen      Code = "cpu-stolen"      // by the hypervisor
	OneThread      Code = "one-thread"      // moves all flows
	NothingDone    Code = "nothing-done"    // in the window
	TooManyFailed  Code = "too-many-failed" //
	SomeFailed     Code = "some-failed"     //
	FlowsStuck     Code = "flows-stuck"     // without an answer when the window ended
	CountersApart  Code = "counters-apart"  // both sides counted something else
	Strangers      Code = "strangers"       // sent something to the run's port
	NoBuffer       Code = "no-buffer"       // for sends
	NoRate         Code = "no-rate"         // passed in a search
	LowerBound     Code = "lower-bound"     // a search that the generator ended
	Saturated      Code = "saturated"       // a queue grew
	VersionsDiffer Code = "versions-differ" // of the agents
	Hearsay        Code = "hearsay"         // one side's account of the other
	LossOfWarmup   Code = "loss-of-warmup"  // may be in the loss
	OneNode        Code = "one-node"        // under both sides
	JobFailed      Code = "job-failed"      //
	OperationsLost Code = "operations-lost" // short or dropped
	FileLaidOut    Code = "file-laid-out"   // by the job and not before it
	FileNew        Code = "file-new"        // when a job wrote to it
	Unsteady       Code = "unsteady"        // after preconditioning
	FileSmall      Code = "file-small"      // smaller than the rule asks for
	ShallowQueue   Code = "shallow-queue"   //
	PageCache      Code = "page-cache"      //
	Uncounted      Code = "uncounted"       // at the window's end
	SlowSubmission Code = "slow-submission" //
	Unmergeable    Code = "unmergeable"     // latencies of several jobs
	Censored       Code = "censored"        // trials that ended before what they were about
	ObjectsLeft    Code = "objects-left"    // on the server
	WatchFailed    Code = "watch-failed"    //
	StateChanged   Code = "state-changed"   // of a server during the run
	StateUnknown   Code = "state-unknown"   // at some looks at it
	LeaderUnheard  Code = "leader-unheard"  // of by a replica of Vault
	Sidecars       Code = "sidecars"        // in the pods
	VolumeKept     Code = "volume-kept"     // after its claim
)

// A Kind is what two warnings of the same thing have in common. Errors and other tools' words have nothing but their
// text.
type Kind struct {
	Code   Code
	Metric string
	Text   string
}

// Kind is the kind of w.
func (w Warning) Kind() Kind {
	k := Kind{Code: w.Code, Metric: w.Metric}
	if w.Code == Failed || w.Code == ToolReports {
		k.Text = w.Text
	}
	return k
}

// Texts are the texts of warnings.
func Texts(warnings []Warning) []string {
	texts := make([]string, len(warnings))
	for i, w := range warnings {
		texts[i] = w.Text
	}
	return texts
}

// Joined is the texts of warnings in one line.
func Joined(warnings []Warning) string { return strings.Join(Texts(warnings), "; ") }
