package explain

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A place is where counters are read, with the prefix and suffix of their metrics' names.
type place struct{ prefix, suffix, name string }

var places = []place{
	{"", "", "at the client"},
	{"", metric.OfServer, "at the server"},
	{metric.OfNode, "", "on the client's node"},
	{metric.OfNode, metric.OfServer, "on the server's node"},
}

// counterFacts are the facts that name where the kernel's counters were read.
var counterFacts = []string{"counters.client", "counters.server"}

// missingCounters returns why a run lacks the kernel's counters of the client or of the server; "" if it has both.
func missingCounters(r *result.Run) string {
	for _, name := range counterFacts {
		switch text := r.Fact(name); {
		case text == "":
			return "the runs have no counters of the kernel"
		case strings.HasPrefix(text, "not counted"):
			return text
		}
	}
	return ""
}

// counterDifference returns the difference of the sum of counters per second at the given places. A counter that a run
// does not have counts as 0 if the kernel's counters were read, or if the run has one of the others.
func (e evidence) counterDifference(subject string, at []place, counters []string) (difference, bool) {
	return e.pairedDifference(subject+" per second", unit.Count, func(r *result.Run) (sum float64, ok bool) {
		counted := missingCounters(r) == ""
		for _, p := range at {
			for _, counter := range counters {
				v, ok := r.Value(metric.OfCounter(p.prefix+counter) + p.suffix)
				sum, counted = sum+v.Number, counted || ok
			}
		}
		return sum / r.Window, counted && r.Window > 0
	})
}

// judgeCounts returns a judge that supports a cause if the worse target has at least the given number of additional
// events per second.
func judgeCounts(subject string, least float64, counters ...string) func(evidence) finding {
	return func(e evidence) finding {
		d, ok := e.counterDifference(subject, places, counters)
		if !ok {
			return unobservable(e.missingCountersReason())
		}
		f := finding{state: d.state(1, least), evidence: []string{d.String()}}
		if f.state == Supported {
			f.evidence[0] += e.mainPlace(d, counters)
		}
		return f
	}
}

// mainPlace names the place with more than half of a difference, if there is more than one.
func (e evidence) mainPlace(whole difference, counters []string) string {
	if e.local {
		return ""
	}
	for _, p := range places {
		if d, ok := e.counterDifference("", []place{p}, counters); ok && 2*d.estimate > whole.estimate {
			return ", " + p.name
		}
	}
	return ""
}

// missingCountersReason returns why there is no difference of counters.
func (e evidence) missingCountersReason() string {
	for _, p := range e.pairs {
		for _, r := range []*result.Run{p.worse, p.better} {
			if why := missingCounters(r); why != "" {
				return why
			}
		}
	}
	return "there are too few blocks with counters"
}

// judgeLevel returns a judge that supports a cause if a metric that is a share is higher on the worse target by at
// least the given amount.
func judgeLevel(name, subject string, least float64) func(evidence) finding {
	return func(e evidence) finding {
		d, ok := e.metricDifference(name)
		if !ok {
			return unobservable("the runs do not have " + name)
		}
		d.subject = subject
		return finding{state: d.state(1, least), evidence: []string{d.String()}}
	}
}

// judgeSoftIRQ supports the cause if one CPU of the worse target spends most of its time in soft interrupts, and more
// than on the better target.
func judgeSoftIRQ(e evidence) finding {
	f := judgeLevel(metric.CPUBusiestSoftIRQ, "soft interrupts on one CPU", leastSoftIRQ)(e)
	if d, ok := e.metricDifference(metric.CPUBusiestSoftIRQ); ok && d.worse < fullSoftIRQ {
		f.state = Contradicted
	}
	return f
}

// judgeConntrackTable checks drops of the connection table, and how full it is.
func judgeConntrackTable(e evidence) finding {
	f := judgeCounts("drops by connection tracking", leastEvents, metric.ConntrackDrops)(e)
	if f.state != Contradicted {
		return f
	}
	used, ok := e.pairedDifference("connection table", unit.Ratio, func(r *result.Run) (most float64, ok bool) {
		for _, p := range places {
			v, has := r.Value(metric.OfCounter(p.prefix+metric.ConntrackUsed) + p.suffix)
			most, ok = max(most, v.Number), ok || has
		}
		return most, true
	})
	if ok && used.worse >= fullTable && used.state(1, leastFuller) == Supported {
		return finding{state: Supported, evidence: []string{used.String()}}
	}
	return f
}

// judgePressure compares how long tasks waited for a CPU. Of a computation it compares how long others had its CPUs.
func judgePressure(e evidence) finding {
	if e.local {
		return judgeLevel(metric.CPUOthers, "share of the time in which other programs had the CPUs", leastOthers)(e)
	}
	d, ok := e.pairedDifference("share of the time in which something waited for a CPU", unit.Ratio,
		func(r *result.Run) (sum float64, ok bool) {
			for _, p := range places {
				v, _ := r.Value(metric.OfCounter(p.prefix+metric.CPUPressure) + p.suffix)
				sum = max(sum, v.Number)
			}
			return sum / r.Window, missingCounters(r) == "" && r.Window > 0
		})
	if !ok {
		return unobservable(e.missingCountersReason())
	}
	return finding{state: d.state(1, leastPressure), evidence: []string{d.String()}}
}
