// Package dynamics is the family of changes: what a network does while something in it changes. A pod sends probes over
// UDP, over an open connection and over new connections, a thousand a second of each, makes a change by the API server
// and sees by its own clock how long the change takes and what is lost meanwhile.
//
// What the cases tell, and what they do not:
//
//   - policy-deny and policy-allow tell how long after the request for a NetworkPolicy traffic to a pod stops or
//     begins; policy-established whether a connection that is open is cut, and when; policy-first whether a pod that
//     a policy is there for already is ever without it.
//   - endpoint-ready tells how long after a pod's readiness its Service answers, endpoint-gone how long a Service sends
//     requests to a pod that has gone, with notice or without; service-programming how long a new Service does not
//     answer.
//   - first-packet tells how long after the request for a pod it answers, and can send.
//   - rollout tells what a rolling update costs those who ask.
//
// They tell what this pod's node sees; others may see a change sooner or later. What is behind a delay (the API server,
// a controller, the agent of the datapath) is told apart only as far as watches tell: until the API server announces
// the change, and from then on.
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

// path is what the names of cases begin with.
const path = "dynamics"

// Family is the family of changes, as the tools measure them.
func Family(tools ...family.Tool) family.Family {
	first := Workload{Change: PolicyDeny}.resolved()
	return family.Family{
		Name: path, Paths: []string{path}, Suites: suites(), Tools: tools,
		Kinds:  []family.Sample{{Name: path, Workload: first}},
		Offers: []family.Sample{{Name: "changes of a network", Workload: first}},
		Parse:  func(_, name, _ string) (family.Workload, error) { return Parse(name) },
	}
}

// A Workload is a change, made again and again. It is comparable.
type Workload struct {
	Change   Change        `json:"change"`
	Trials   int           `json:"trials"`
	Same     bool          `json:"same,omitempty"`   // pods on the prober's node, and not on another one
	Abrupt   bool          `json:"abrupt,omitempty"` // a pod goes without notice
	Interval time.Duration `json:"interval"`         // between probes of a kind
}

// Limits of a workload.
const (
	mostTrials      = 20
	defaultInterval = time.Millisecond
	leastInterval   = 500 * time.Microsecond
	mostInterval    = 100 * time.Millisecond
	// Patience is how long a trial waits for a change to show. One that has not shown it by then is censored: it took
	// longer.
	Patience = 20 * time.Second
)

// Parse reads a change, as Title writes it: policy-deny, endpoint-gone:how=abrupt,at=same,trials=3. Every error Is
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

// parameters of a change, in the order of the documentation.
var parameters = []string{"at", "how", "trials", "interval"}

func (w *Workload) set(key, value string) (err error) {
	choose := func(yes, no string) (bool, error) {
		if value != yes && value != no {
			return false, fmt.Errorf("%w: %s=%s is neither %s nor %s", family.ErrInvalid, key, value, no, yes)
		}
		return value == yes, nil
	}
	switch key {
	case "at":
		w.Same, err = choose("same", "other")
	case "how":
		if w.Change != EndpointGone {
			return fmt.Errorf("%w: only %s has how=", family.ErrInvalid, EndpointGone)
		}
		w.Abrupt, err = choose("abrupt", "graceful")
	case "trials":
		w.Trials, err = family.Positive(strconv.Atoi(value))
	case "interval":
		w.Interval, err = family.Positive(time.ParseDuration(value))
	default:
		return family.Known(path, key, parameters)
	}
	return err
}

// resolved is the workload with its defaults.
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
	case w.Trials > mostTrials:
		return fmt.Errorf("%w: trials=%d is more than %d; a block has a run, and there are many blocks", family.ErrInvalid,
			w.Trials, mostTrials)
	case w.Interval < leastInterval || w.Interval > mostInterval:
		return fmt.Errorf("%w: interval=%v is not from %v to %v", family.ErrInvalid, w.Interval, leastInterval, mostInterval)
	}
	return nil
}

// Title is the workload's part of its case's name.
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

// subject is what changes in plain words.
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

// Disturbs says what of the workload other users of the network may feel: one of the three kinds of probes opens
// connections.
func (w Workload) Disturbs(family.Times) string {
	if rate := time.Second / w.Interval; rate > family.GentleRate {
		return fmt.Sprintf("%d new connections per second are more than %d", rate, family.GentleRate)
	}
	return ""
}

// Traits are those of a case.
func (w Workload) Traits() family.Traits {
	k := kinds[w.Change]
	trials := time.Duration(w.Trials)
	return family.Traits{
		Path: path, Kind: w.Title(), Metric: k.verdict,
		Words:   result.Words{Subject: w.subject(), Quantity: k.quantity},
		Limits:  family.Limits{Run: time.Minute + trials*(Patience+startTime)},
		Nominal: family.Nominal{Run: k.setup + trials*k.each},
		Needs:   targets.Placement{Call: w.Change.call()},
	}
}

// startTime is how long a pod may take to start or to go.
const startTime = 40 * time.Second

// Verb is the agent's, with a [Run] as its body.
const Verb = "dynamics"

// A Run is what an agent is asked to do.
type Run struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Workload Workload      `json:"workload"`
}

// Open is the run without its secrets, to be kept.
func (r Run) Open() any {
	r.Endpoint = r.Endpoint.Open()
	return r
}
