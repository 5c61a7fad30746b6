package family

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/parameter"
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

// paceParameters are the parameters of a Pace, of which a workload has one.
var paceParameters = parameter.Schema[Pace]{
	parameter.New(parameter.Parameter[Pace]{
		Name: "rate", Help: "requests per second at planned times (open loop)",
	}, func(p *Pace) *float64 { return &p.Rate },
		parameter.Number(unit.PerSecond, fmt.Sprintf("above 0, up to %d op/s", MaxRate),
			func(v float64) bool { return v > 0 && v <= MaxRate })),
	{
		Name: "clients", Values: fmt.Sprintf("1 to %d, or the fewest and the most, such as 1-64", MaxClients),
		Help: "clients, each of which sends its next request after the last response (closed loop); a range searches " +
			"how many saturate the server",
		Set: func(p *Pace, text string) (err error) {
			low, high, search := strings.Cut(text, "-")
			p.MostClients = 0
			if p.Clients, err = strconv.Atoi(low); err == nil && search {
				p.MostClients, err = strconv.Atoi(high)
			}
			if err != nil || p.Clients < 1 || search && p.MostClients <= p.Clients ||
				max(p.Clients, p.MostClients) > MaxClients {
				return fmt.Errorf("it has to be 1 to %d, or the fewest and the most, such as 1-64", MaxClients)
			}
			return nil
		},
		Get: func(p Pace) string {
			switch {
			case p.MostClients != 0:
				return fmt.Sprintf("%d-%d", p.Clients, p.MostClients)
			case p.Clients != 0:
				return strconv.Itoa(p.Clients)
			}
			return ""
		},
		Valid: func(p Pace) bool {
			return p.Clients >= 0 && max(p.Clients, p.MostClients) <= MaxClients &&
				(p.MostClients == 0 || p.MostClients > p.Clients)
		},
	},
	parameter.New(parameter.Parameter[Pace]{
		Name: "knee", Help: "limit on the 99th percentile of the latency, in a search for the highest rate that keeps to it",
	}, func(p *Pace) *time.Duration { return &p.Knee }, parameter.Duration(time.Microsecond, maxKnee)),
}

// PaceParameters returns the parameters of the pace of a W. usual returns the pace of a W without any of them, which
// readers are told by rate.
func PaceParameters[W any](pace func(*W) *Pace, usual func(W) Pace, rate string) parameter.Schema[W] {
	var table parameter.Schema[W]
	for _, p := range paceParameters {
		own := parameter.Parameter[W]{
			Name: p.Name, Values: p.Values, Help: p.Help,
			Set:   func(w *W, text string) error { return p.Set(pace(w), text) },
			Get:   func(w W) string { return p.Get(*pace(&w)) },
			Valid: func(w W) bool { return p.Valid(*pace(&w)) },
			DefaultOf: func(w W) string {
				if given := *pace(&w); given != (Pace{}) && p.Get(given) == "" {
					return "" // another one is given
				}
				return p.Get(usual(w))
			},
		}
		if p.Name == "rate" {
			own.Default = rate
		}
		table = append(table, own)
	}
	return table
}

// Validate returns an error that names what is wrong. what names the workload.
func (p Pace) Validate(what string) error {
	given := 0
	for _, of := range paceParameters {
		if of.Get(p) != "" {
			given++
		}
	}
	if given != 1 {
		return fmt.Errorf("%s has one of rate (open loop), clients (closed loop) and knee (a search for the rate)", what)
	}
	return paceParameters.Check(p)
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
