package family

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Limits of a Pace.
const (
	MaxRate    = 100_000 // requests per second
	MaxClients = 10_000  // clients of a closed loop, and connections
	maxKnee    = time.Minute
)

// DefaultRate is the rate, in requests per second, if neither a rate, clients nor a knee is given.
const DefaultRate = 20

// Load above these limits may disturb other users of a server and needs consent.
const (
	GentleRate    = 100 // requests, or new connections, per second
	GentleClients = 10  // of a closed loop, and simultaneous connections
)

// The windows of a search, in addition to the one that counts.
const (
	searchWindows = 20               // at most
	drain         = 10 * time.Second // for the last responses of each window
	usualWindows  = 5                // usual sum of the short trials
)

// A Pace determines when requests are sent over HTTP: at planned times (Rate), as fast as the server answers (Clients),
// or in a search for the server's limit. It has exactly one of Rate, Clients and Knee. It is comparable with ==.
type Pace struct {
	Rate    float64 `json:"rate,omitempty"`    // open loop: requests per second
	Clients int     `json:"clients,omitempty"` // closed loop: each client sends its next request after its last response
	// MostClients is the upper end of a search for the smallest number of clients that saturates the server; Clients is
	// the lower end. 0: no search.
	MostClients int `json:"most_clients,omitempty"`
	// Knee is the limit on the 99th percentile of the latency, ns, in a search for the highest rate that keeps to it.
	Knee time.Duration `json:"knee,omitempty"`
}

// searches reports whether the pace is a search, which brings the server to its limit.
func (p Pace) searches() bool { return p.Knee > 0 || p.MostClients > 0 }

// Quantity returns a name of the pace's metric for readers.
func (p Pace) Quantity() string {
	switch {
	case p.Knee > 0:
		return "highest rate"
	case p.MostClients > 0:
		return "rate at saturation"
	}
	return "latency"
}

// PaceParameters lists the parameters of a Pace in the text of a workload, in the order of the documentation.
var PaceParameters = []string{"rate", "clients", "knee"}

// Set sets one of [PaceParameters] and ignores other keys. Values must be above 0, because a 0 would silently become
// the default.
func (p *Pace) Set(key, value string) (err error) {
	switch key {
	case "rate":
		p.Rate, err = Positive(unit.ParseAs(value, unit.PerSecond))
	case "clients":
		low, high, search := strings.Cut(value, "-")
		if p.Clients, err = Positive(strconv.Atoi(low)); err == nil && search {
			p.MostClients, err = Positive(strconv.Atoi(high))
		}
	case "knee":
		p.Knee, err = Positive(time.ParseDuration(value))
	}
	return err
}

// OrDefault returns p, or otherwise if p is zero.
func (p Pace) OrDefault(otherwise Pace) Pace {
	if p == (Pace{}) {
		return otherwise
	}
	return p
}

// Validate returns nil, or an error that wraps [ErrInvalid] and names the value that is out of range. what names the
// workload in errors.
func (p Pace) Validate(what string) error {
	kinds := 0
	for _, given := range []bool{p.Rate != 0, p.Clients != 0, p.Knee != 0} {
		if given {
			kinds++
		}
	}
	switch {
	case p.Knee < 0 || p.Knee > maxKnee:
		return fmt.Errorf("%w: a time of %s is out of range", ErrInvalid, what)
	case kinds != 1:
		return fmt.Errorf("%w: %s has one of rate (open loop), clients (closed loop) and knee (a search for the rate)",
			ErrInvalid, what)
	case !(p.Rate >= 0 && p.Rate <= MaxRate):
		return fmt.Errorf("%w: rate=%g is not from 0 to %d per second", ErrInvalid, p.Rate, MaxRate)
	case p.Clients < 0 || max(p.Clients, p.MostClients) > MaxClients:
		return fmt.Errorf("%w: clients=%d is not from 1 to %d", ErrInvalid, max(p.Clients, p.MostClients), MaxClients)
	case p.MostClients != 0 && p.MostClients <= p.Clients:
		return fmt.Errorf("%w: clients=%d-%d is no range; write the fewest and the most, such as clients=1-64",
			ErrInvalid, p.Clients, p.MostClients)
	}
	return nil
}

// Options returns the parameters in which p differs from def, in the form that Set reads.
func (p Pace) Options(def Pace) []string {
	var options []string
	switch {
	case p.MostClients != 0:
		options = append(options, fmt.Sprintf("clients=%d-%d", p.Clients, p.MostClients))
	case p.Clients != def.Clients && p.Clients != 0:
		options = append(options, fmt.Sprintf("clients=%d", p.Clients))
	}
	if p.Rate != def.Rate && p.Rate != 0 {
		options = append(options, "rate="+strconv.FormatFloat(p.Rate, 'f', -1, 64))
	}
	if p.Knee != 0 {
		options = append(options, fmt.Sprintf("knee=%s", p.Knee))
	}
	return options
}

// Title returns a name with its options: name:key=value,key=value.
func Title(name string, options []string) string {
	if len(options) == 0 {
		return name
	}
	return name + ":" + strings.Join(options, ",")
}

// At returns the pace with the given rate, if it has no clients, or else with the given number of clients in a closed
// loop. A value of 0 changes nothing, and a search is returned unchanged.
func (p Pace) At(rate float64, clients int) Pace {
	switch {
	case p.searches():
		return p
	case rate > 0 && p.Clients == 0:
		return Pace{Rate: rate}
	case clients > 0:
		return Pace{Clients: clients}
	}
	return p
}

// Metric returns the metric that verdicts are about.
func (p Pace) Metric() string {
	if p.searches() {
		return metric.Rate
	}
	return metric.P50
}

// Due returns how many requests an open loop plans in a run; 0 for other paces.
func (p Pace) Due(t Times) float64 { return p.Rate * (t.Warmup + t.Window).Seconds() }

// Disturbs returns the reason why the pace may disturb other users of a server, empty if it does not.
func (p Pace) Disturbs() string {
	switch {
	case p.Knee > 0:
		return "it looks for the highest rate that the server carries"
	case p.MostClients > 0:
		return fmt.Sprintf("it looks for the number of clients that saturates the server, up to %d", p.MostClients)
	case p.Rate > GentleRate:
		return fmt.Sprintf("%g requests per second are more than %d", p.Rate, GentleRate)
	case p.Clients > GentleClients:
		return fmt.Sprintf("%d clients that ask all the time are more than %d", p.Clients, GentleClients)
	}
	return ""
}

// Alone reports whether the workload needs sites of its own: a search overloads the server and takes long.
func (p Pace) Alone() bool { return p.searches() }

// Limits returns the limits of a run with the time extra outside of its windows.
func (p Pace) Limits(extra time.Duration) Limits {
	l := Limits{Run: extra}
	if p.searches() {
		l.Windows, l.Run = 1+searchWindows, l.Run+searchWindows*drain
	}
	return l
}

// Nominal returns the usual time of a run with the time extra outside of its windows.
func (p Pace) Nominal(extra time.Duration) Nominal {
	n := Nominal{Run: extra}
	if p.searches() {
		n.Windows = usualWindows
	}
	return n
}

// HTTPTraits are the properties of a workload over HTTP that its tool needs.
type HTTPTraits struct {
	Pace
	Kinds     []string   // kinds of requests in a mix, which are reported separately; empty: there is one kind
	Parts     []string   // parts of the latency that are reported in addition to those of every workload
	Values    []string   // metrics that the agent computes itself
	Objective *Objective // nil: there is none
}

// An Objective is an official limit on the 99th percentile of a latency, with its original wording.
type Objective struct {
	Limit     time.Duration
	Indicator string // what is measured
	Words     string // the objective
	Source    string // URL
}

// An Environment gives access to the variables and files of this machine that a user's description names.
type Environment struct {
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
}
