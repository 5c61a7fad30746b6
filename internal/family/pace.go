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
	MaxClients = 10_000  // of a closed loop, and connections
	maxKnee    = time.Minute
)

// DefaultRate is requests per second, where neither a rate, clients nor a knee is given.
const DefaultRate = 20

// Beyond these, load needs consent where there are other users, who may feel it.
const (
	GentleRate    = 100 // requests, or new connections, per second
	GentleClients = 10  // of a closed loop, and connections at once
)

// What a search takes beside its window: so many others, each with the time that its last answers may take.
const (
	searchWindows = 20
	drain         = 10 * time.Second
	usualWindows  = 5 // that its short trials take together, as a rule
)

// A Pace is how often something is asked over HTTP: at planned times, as fast as it answers, or ever faster until it
// does not keep up. It has one of Rate, Clients and Knee. Every value of it is comparable.
type Pace struct {
	Rate    float64 `json:"rate,omitempty"`    // open loop: requests per second
	Clients int     `json:"clients,omitempty"` // closed loop: each asks as soon as it is answered
	// MostClients makes Clients the lower end of a search for the smallest number that saturates what is asked; 0: none.
	MostClients int `json:"most_clients,omitempty"`
	// Knee is the limit of the 99th percentile in a search for the highest rate that keeps below it.
	Knee time.Duration `json:"knee,omitempty"`
}

// searches reports whether the pace is searched, which brings what is asked to its limit.
func (p Pace) searches() bool { return p.Knee > 0 || p.MostClients > 0 }

// Quantity is what the metric of a pace tells, in plain words.
func (p Pace) Quantity() string {
	switch {
	case p.Knee > 0:
		return "highest rate"
	case p.MostClients > 0:
		return "rate at saturation"
	}
	return "latency"
}

// PaceParameters are those of a Pace in the text of a workload, in the order of the documentation.
var PaceParameters = []string{"rate", "clients", "knee"}

// Set takes one of [PaceParameters]. Where 0 would silently become the default it is an error.
func (p *Pace) Set(key, value string) (err error) {
	switch key {
	case "rate":
		p.Rate, err = Positive(unit.ParseAs(value, unit.PerSecond))
	case "clients":
		least, most, search := strings.Cut(value, "-")
		if p.Clients, err = Positive(strconv.Atoi(least)); err == nil && search {
			p.MostClients, err = Positive(strconv.Atoi(most))
		}
	case "knee":
		p.Knee, err = Positive(time.ParseDuration(value))
	}
	return err
}

// Or is the pace, or another one where nothing is said.
func (p Pace) Or(otherwise Pace) Pace {
	if p == (Pace{}) {
		return otherwise
	}
	return p
}

// Validate is nil, or an error that Is ErrInvalid and names what is out of range for what is asked.
func (p Pace) Validate(what string) error {
	ways := 0
	for _, given := range []bool{p.Rate != 0, p.Clients != 0, p.Knee != 0} {
		if given {
			ways++
		}
	}
	switch {
	case p.Knee < 0 || p.Knee > maxKnee:
		return fmt.Errorf("%w: a time of %s is out of range", ErrInvalid, what)
	case ways != 1:
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

// Options are what of the pace is not the default, as Set reads it.
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

// Title is a name with its options.
func Title(name string, options []string) string {
	if len(options) == 0 {
		return name
	}
	return name + ":" + strings.Join(options, ",")
}

// At is another rate, or so many clients in a closed loop; each 0 leaves it as it is. A search keeps its own pace.
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

// Metric is what a verdict is about.
func (p Pace) Metric() string {
	if p.searches() {
		return metric.Rate
	}
	return metric.P50
}

// Due is how many requests are planned; 0 where that is not known before.
func (p Pace) Due(t Times) float64 { return p.Rate * (t.Warmup + t.Window).Seconds() }

// Disturbs says what is beyond what no other user of a server should feel; empty if nothing is.
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

// Alone says that what is asked is to be asked by nobody else before or after: a search leaves it as overload does, and
// takes long.
func (p Pace) Alone() bool { return p.searches() }

// Limits are the limits of a run with so much time for what is particular to it.
func (p Pace) Limits(besides time.Duration) Limits {
	l := Limits{Run: besides}
	if p.searches() {
		l.Windows, l.Run = 1+searchWindows, l.Run+searchWindows*drain
	}
	return l
}

// Nominal is what a run usually takes with so much time for what is particular to it.
func (p Pace) Nominal(besides time.Duration) Nominal {
	n := Nominal{Run: besides}
	if p.searches() {
		n.Windows = usualWindows
	}
	return n
}

// Asked is what a tool has to know of something that is asked over HTTP.
type Asked struct {
	Pace
	Kinds     []string   // of request in a mix, each of which is reported; empty: there is one kind
	Parts     []string   // of the latency that are reported besides those of every request
	Values    []string   // metrics that the agent computes itself
	Objective *Objective // nil: there is none
}

// An Objective is an official limit of the 99th percentile of a latency, in its own words.
type Objective struct {
	Limit     time.Duration
	Indicator string // what is to be measured
	Words     string // what is to be reached
	Source    string
}

// An Environment is where what a user's description names is found: variables and files of this machine.
type Environment struct {
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
}
