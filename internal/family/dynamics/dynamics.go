// Package dynamics is the family of changes: how a network behaves while something in it changes. A pod sends probes
// over UDP, over an open connection and over new connections, a thousand per second of each, makes a change through the
// API server, and measures with its own clock how long the change takes and what is lost meanwhile.
//
// What the cases measure, and what they do not:
//
//   - policy-deny and policy-allow measure how long after the request for a NetworkPolicy traffic to a pod stops or
//     begins; policy-established whether and when an open connection is cut; policy-first whether a new pod is ever
//     without a policy that existed before it.
//   - endpoint-ready measures how long after a pod is ready its Service answers; endpoint-gone how long a Service sends
//     requests to a pod that has gone, with or without notice; service-programming how long a new Service does not
//     answer.
//   - first-packet measures how long after the request for a pod the pod answers, and can send.
//   - rollout measures what clients lose in a rolling update.
//
// They measure what this pod's node sees; other nodes may see a change sooner or later. Of the causes of a delay (API
// server, controller, agent of the datapath) they separate only what watches show: the time until the API server
// announces the change, and the time from then on.
package dynamics

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// path is the first part of the names of all cases.
const path = "dynamics"

// Family returns the family of changes, measured by the tools.
func Family(tools ...family.Tool) family.Family {
	first := Workload{Change: PolicyDeny}
	parameters.Fill(&first)
	return family.Family{
		Name: path, Paths: []string{path}, Suites: suites(), Tools: tools,
		Kinds:      []family.Sample{{Name: path, Workload: first}},
		Offers:     []family.Sample{{Name: "changes of a network", Workload: first}},
		Parse:      func(_, name, _ string) (family.Workload, error) { return Parse(name) },
		Parameters: family.ParametersOf(parameters),
	}
}

// A Workload is a change that is repeated in trials. It is comparable with ==.
type Workload struct {
	Change   Change        `json:"change"`
	Trials   int           `json:"trials"`
	Same     bool          `json:"same,omitempty"`   // the pods are on the prober's node, not on another one
	Abrupt   bool          `json:"abrupt,omitempty"` // the pod ends without notice
	Interval time.Duration `json:"interval"`         // between probes of a kind, ns
}

// Limits of a workload.
const (
	maxTrials   = 20
	minInterval = 500 * time.Microsecond
	maxInterval = 100 * time.Millisecond
	// TrialTimeout is how long a trial waits for a change to show. If the change does not show in that time, the trial
	// is censored: the change took longer.
	TrialTimeout = 20 * time.Second
)

// parameters are those of all changes, in the order of canonical names.
var parameters = parameter.Schema[Workload]{
	parameter.New(parameter.Parameter[Workload]{
		Name: "at", Default: "other", Help: "on which node the pods are, seen from the prober",
	}, func(w *Workload) *bool { return &w.Same }, parameter.Switch("other", "same")),
	parameter.New(parameter.Parameter[Workload]{
		Name: "how", Of: "`endpoint-gone`", Has: func(w Workload) bool { return w.Change == EndpointGone },
		Default: "graceful", Help: "whether the pod ends with notice or without",
	}, func(w *Workload) *bool { return &w.Abrupt }, parameter.Switch("graceful", "abrupt")),
	parameter.New(parameter.Parameter[Workload]{
		Name: "trials", Default: "as many as take some six seconds",
		DefaultOf: func(w Workload) string { return strconv.Itoa(kinds[w.Change].trials) }, Help: "changes in a run",
	}, func(w *Workload) *int { return &w.Trials }, parameter.Int(1, maxTrials)),
	parameter.New(parameter.Parameter[Workload]{
		Name: "interval", Default: "1ms", Help: "time between probes of a kind",
	}, func(w *Workload) *time.Duration { return &w.Interval }, parameter.Duration(minInterval, maxInterval)),
}

// Parse returns the workload with a name such as policy-deny or endpoint-gone:how=abrupt,at=same,trials=3.
func Parse(text string) (Workload, error) {
	name, _, _ := strings.Cut(text, ":")
	w := Workload{Change: Change(name)}
	if kinds[w.Change].trials == 0 {
		return Workload{}, fmt.Errorf("there is no change %q; there are %s", name, prose.Choices(name, names()))
	}
	if err := parameters.Parse(&w, text); err != nil {
		return Workload{}, err
	}
	parameters.Fill(&w)
	return w, parameters.Check(w)
}

func names() []string {
	var list []string
	for _, c := range changes {
		list = append(list, string(c))
	}
	return list
}

// Title returns the workload's part of its case's name.
func (w Workload) Title() string { return parameters.Text(string(w.Change), w) }

func (w Workload) String() string { return path + "/" + w.Title() }

// subject returns a description of the change for readers.
func (w Workload) subject() string {
	words := "Change: " + kinds[w.Change].about
	if w.Change == EndpointGone {
		how := ", after notice"
		if w.Abrupt {
			how = ", without notice"
		}
		words += how
	}
	if w.Same {
		words += ", on the same node"
	}
	return words
}

// Disturbs returns the reason why the workload may disturb other users of the network, empty if there is none: one of
// the three kinds of probes opens connections.
func (w Workload) Disturbs(family.Times) string {
	if rate := time.Second / w.Interval; rate > family.GentleRate {
		return fmt.Sprintf("%d new connections per second are more than %d", rate, family.GentleRate)
	}
	return ""
}

// Traits returns the traits of the workload.
func (w Workload) Traits() family.Traits {
	k := kinds[w.Change]
	trials := time.Duration(w.Trials)
	return family.Traits{
		Path: path, Kind: w.Title(), Metric: k.verdict,
		Words:   result.Words{Subject: w.subject(), Quantity: k.quantity},
		Limits:  family.Limits{Run: time.Minute + trials*(TrialTimeout+startTime)},
		Nominal: family.Nominal{Run: k.setup + trials*k.each},
		Needs:   targets.Placement{AsksAPI: true, ProbesPods: true, Rights: k.rights},
	}
}

// startTime is how long a pod may take to start or to end.
const startTime = 40 * time.Second

// Verb is the verb of requests to the agent; their body is a [Run].
const Verb = "dynamics"

// A Run is the body of a request to the agent.
type Run struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Workload Workload      `json:"workload"`
}

// Redacted returns the run without its secrets, for the results directory.
func (r Run) Redacted() any {
	r.Endpoint = r.Endpoint.Redacted()
	return r
}
