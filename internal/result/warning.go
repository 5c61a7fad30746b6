package result

import "strings"

// A Warning is a caveat about a run, a site or an experiment, or the reason why a run is invalid. Its text is recorded
// evidence; programs distinguish warnings by code and metric, never by text.
type Warning struct {
	Code   Code   `json:"code"`
	Metric string `json:"metric,omitempty"` // if it is about one metric alone
	Text   string `json:"text"`             // a sentence without full stop
}

// A Code identifies a kind of warning, independent of the numbers and names in its text.
type Code string

// The codes of warnings.
const (
	Failed           Code = "failed"           // the run ended with an error, which is the text
	ToolReports      Code = "tool-reports"     // another tool's own message
	PlaceUnhealthy   Code = "place-unhealthy"  // the place reported a failure during the run
	SiteNotRemoved   Code = "site-not-removed" // a site could not be removed
	NotFinite        Code = "not-finite"       // a value is NaN or infinite
	FewSamples       Code = "few-samples"      // too few samples for a percentile
	MetricMissing    Code = "metric-missing"   // the run has no usable main metric
	AuditError       Code = "audit-"           // a prefix; the name of the audit rule follows
	AgentFailed      Code = "agent-failed"
	ShortWindow      Code = "short-window"
	StoppedEarly     Code = "stopped-early"
	Throttled        Code = "throttled"       // the agent's CPU was throttled by its cgroup
	CPULimitSet      Code = "cpu-limit-set"   // the user limits the CPU time of the pods
	GeneratorLate    Code = "generator-late"  // the generator did not keep to its schedule
	RateMissed       Code = "rate-missed"     // the sender did not reach its planned rate
	GeneratorLimit   Code = "generator-limit" // the generator was the bottleneck
	CPULimit         Code = "cpu-limit"       // the CPU of the client's threads was the bottleneck
	CPUStolen        Code = "cpu-stolen"      // the hypervisor took CPU time
	CPUShared        Code = "cpu-shared"      // other programs used the CPUs of the run
	WrongResult      Code = "wrong-result"    // a computation had another result than it must have
	OneThread        Code = "one-thread"      // one thread carries all flows
	NothingDone      Code = "nothing-done"    // no operation ended in the window
	TooManyFailed    Code = "too-many-failed"
	SomeFailed       Code = "some-failed"
	FlowsStuck       Code = "flows-stuck"       // flows were waiting for an answer when the window ended
	CountersDisagree Code = "counters-disagree" // the counters of both sides disagree
	ForeignTraffic   Code = "foreign-traffic"   // others sent to the run's port
	NoBuffer         Code = "no-buffer"         // the kernel had no buffer for sends
	NoRate           Code = "no-rate"           // no rate passed in a search
	LowerBound       Code = "lower-bound"       // the rate of a search is a lower bound
	Saturated        Code = "saturated"         // a queue grew
	VersionsDiffer   Code = "versions-differ"   // the agents have different versions
	DerivedFromPeer  Code = "derived-from-peer" // one side's numbers are computed from the other's
	LossOfWarmup     Code = "loss-of-warmup"    // the loss may include the warm-up
	OneNode          Code = "one-node"          // both sides are on one node
	JobFailed        Code = "job-failed"
	OperationsLost   Code = "operations-lost" // operations were short or dropped
	FileLaidOut      Code = "file-laid-out"   // the job laid out its file during the run
	FileNew          Code = "file-new"        // the job wrote to a new file
	Unsteady         Code = "unsteady"        // the rate was not steady after preconditioning
	FileSmall        Code = "file-small"      // the file is smaller than the rule requires
	ShallowQueue     Code = "shallow-queue"
	PageCache        Code = "page-cache"
	Uncounted        Code = "uncounted" // operations in flight at the window's end are not counted
	SlowSubmission   Code = "slow-submission"
	Unmergeable      Code = "unmergeable"  // latencies of several jobs cannot be merged
	Censored         Code = "censored"     // trials ended before their outcome showed
	ObjectsLeft      Code = "objects-left" // objects were left on the server
	WatchFailed      Code = "watch-failed"
	StateChanged     Code = "state-changed"  // the state of a server changed during the run
	StateUnknown     Code = "state-unknown"  // the state of a server was sometimes not known
	LeaderUnheard    Code = "leader-unheard" // a replica of Vault had not heard from its leader
	Sidecars         Code = "sidecars"       // the pods have sidecars
	MeshUnproven     Code = "mesh-unproven"  // it is not known whether traffic passed the mesh of the pods
	VolumeKept       Code = "volume-kept"    // a volume outlived its claim
	NoSwitch         Code = "no-switch"      // a target is measured as the visit before left it
	TargetReports    Code = "target-reports" // what a target found before the first run
)

// A Kind identifies warnings that differ only in the numbers and names of their texts. Text is set only for errors and
// messages of other tools, which have no more specific code.
type Kind struct {
	Code   Code
	Metric string
	Text   string
}

// Kind returns the kind of w.
func (w Warning) Kind() Kind {
	k := Kind{Code: w.Code, Metric: w.Metric}
	if w.Code == Failed || w.Code == ToolReports {
		k.Text = w.Text
	}
	return k
}

// Texts returns the texts of warnings.
func Texts(warnings []Warning) []string {
	texts := make([]string, len(warnings))
	for i, w := range warnings {
		texts[i] = w.Text
	}
	return texts
}

// Joined returns the texts of warnings in one line.
func Joined(warnings []Warning) string { return strings.Join(Texts(warnings), "; ") }
