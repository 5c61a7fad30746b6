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
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// path is the first part of the names of all cases.
const path = "dynamics"

// Family returns the family of changes, measured by the tools.
func Family(tools ...family.Tool) family.Family {
	first := Workload{Change: PolicyDeny}.resolved()
	return family.Family{
		Name: path, Paths: []string{path}, Suites: suites(), Tools: tools,
		Kinds:  []family.Sample{{Name: path, Workload: first}},
		Offers: []family.Sample{{Name: "changes of a network", Workload: first}},
		Parse:  func(_, name, _ string) (family.Workload, error) { return Parse(name) },
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
	maxTrials       = 20
	defaultInterval = time.Millisecond
	minInterval     = 500 * time.Microsecond
	maxInterval     = 100 * time.Millisecond
	// TrialTimeout is how long a trial waits for a change to show. If the change does not show in that time, the trial
	// is censored: the change took longer.
	TrialTimeout = 20 * time.Second
)

// Parse reads a workload as Title writes it: policy-deny, endpoint-gone:how=abrupt,at=same,trials=3. Every error wraps
// family.ErrInvalid.
func Parse(text string) (Workload, error) {
	name, options, _ := strings.Cut(text, ":")
	w := Workload{Change: Change(name)}
	if kinds[w.Change].trials == 0 {
		return Workload{}, fmt.Errorf("%w: there is no change %q; there are %s", family.ErrInvalid, name,
			prose.Choices(name, names()))
	}
	if err := family.Parameters(text, options, w.set); err != nil {
		return Workload{}, err
	}
	w = w.resolved()
	return w, w.validate()
}

func names() []string {
	var list []string
	for _, c := range changes {
		list = append(list, string(c))
	}
	return list
}

// parameters lists the parameters of a workload, in the order of the documentation.
var parameters = []string{"at", "how", "trials", "interval"}

func (w *Workload) set(key, value string) (err error) {
	choose := func(yes, no string) (bool, error) {
		if value != yes && value != no {
			return false, fmt.Errorf("it is neither %s nor %s", no, yes)
		}
		return value == yes, nil
	}
	switch key {
	case "at":
		w.Same, err = choose("same", "other")
	case "how":
		if w.Change != EndpointGone {
			return fmt.Errorf("only %s has how=", EndpointGone)
		}
		w.Abrupt, err = choose("abrupt", "graceful")
	case "trials":
		w.Trials, err = family.Positive(strconv.Atoi(value))
	case "interval":
		w.Interval, err = family.Positive(time.ParseDuration(value))
	default:
		return family.CheckParameter(path, key, parameters)
	}
	return err
}

// resolved returns the workload with its defaults.
func (w Workload) resolved() Workload {
	if w.Trials == 0 {
		w.Trials = kinds[w.Change].trials
	}
	if w.Interval == 0 {
		w.Interval = defaultInterval
	}
	return w
}

func (w Workload) validate() error {
	switch {
	case w.Trials > maxTrials:
		return fmt.Errorf("%w: trials=%d is more than %d; a block has a run, and there are many blocks", family.ErrInvalid,
			w.Trials, maxTrials)
	case w.Interval < minInterval || w.Interval > maxInterval:
		return fmt.Errorf("%w: interval=%v is not from %v to %v", family.ErrInvalid, w.Interval, minInterval, maxInterval)
	}
	return nil
}

// Title returns the workload's part of its case's name.
func (w Workload) Title() string {
	var options []string
	if w.Same {
		options = append(options, "at=same")
	}
	if w.Abrupt {
		options = append(options, "how=abrupt")
	}
	if w.Trials != kinds[w.Change].trials {
		options = append(options, fmt.Sprintf("trials=%d", w.Trials))
	}
	if w.Interval != defaultInterval {
		options = append(options, "interval="+w.Interval.String())
	}
	return family.Title(string(w.Change), options)
}

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
