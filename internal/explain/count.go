package explain

import (
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A place is where counters are of, as their metrics' names have it.
type place struct{ prefix, suffix, name string }

var places = []place{
	{"", "", "at the client"},
	{"", metric.OfServer, "at the server"},
	{metric.OfNode, "", "on the client's node"},
	{metric.OfNode, metric.OfServer, "on the server's node"},
}

// counted are the facts that say where the kernel's counters were read.
var counted = []string{"counters.client", "counters.server"}

// uncounted says why a run has no counters; empty if it has some.
func uncounted(r *result.Run) string {
	for _, name := range counted {
		switch text := r.Fact(name); {
		case text == "":
			return "the runs have no counters of the kernel"
		case strings.HasPrefix(text, "not counted"):
			return text
		}
	}
	return ""
}

// counts is the difference in counters per second, at all places or one. What a run did not count more of was 0.
func (e evidence) counts(subject string, at []place, counters []string) (difference, bool) {
	return e.of(subject+" per second", unit.Count, func(r *result.Run) (sum float64, ok bool) {
		for _, p := range at {
			for _, counter := range counters {
				v, _ := r.Value(metric.OfCounter(p.prefix+counter) + p.suffix)
				sum += v.Number
			}
		}
		return sum / r.Window, uncounted(r) == "" && r.Window > 0
	})
}

// judgeCounts supports a cause where at least so many events per second are more on the worse target.
func judgeCounts(subject string, least float64, counters ...string) func(evidence) finding {
	return func(e evidence) finding {
		d, ok := e.counts(subject, places, counters)
		if !ok {
			return unseen(e.whyUncounted())
		}
		f := finding{state: d.judged(1, least), evidence: []string{d.String()}}
		if f.state == Supported {
			f.evidence[0] += e.mostly(d, counters)
		}
		return f
	}
}

// mostly names the place that more than half of a difference is of.
func (e evidence) mostly(whole difference, counters []string) string {
	for _, p := range places {
		if d, ok := e.counts("", []place{p}, counters); ok && 2*d.estimate > whole.estimate {
			return ", " + p.name
		}
	}
	return ""
}

func (e evidence) whyUncounted() string {
	for _, p := range e.pairs {
		for _, r := range []*result.Run{p.worse, p.better} {
			if why := uncounted(r); why != "" {
				return why
			}
		}
	}
	return "there are too few blocks with counters"
}

// judgeLevel supports a cause where a metric that is a share is higher on the worse target, by at least so much.
func judgeLevel(name, subject string, least float64) func(evidence) finding {
	return func(e evidence) finding {
		d, ok := e.metric(name)
		if !ok {
			return unseen("the runs do not have " + name)
		}
		d.subject = subject
		return finding{state: d.judged(1, least), evidence: []string{d.String()}}
	}
}

// judgeSoftIRQ supports a CPU without time left: most of its time goes into soft interrupts.
func judgeSoftIRQ(e evidence) finding {
	f := judgeLevel(metric.CPUSoftest, "soft interrupts on one CPU", leastSoftIRQ)(e)
	if d, ok := e.metric(metric.CPUSoftest); ok && d.worse < fullSoftIRQ {
		f.state = Contradicted
	}
	return f
}

// judgeTable looks at the table of connections: what it had no room for, and how full it is.
func judgeTable(e evidence) finding {
	f := judgeCounts("drops by connection tracking", leastEvents, metric.ConntrackDrops)(e)
	if f.state != Contradicted {
		return f
	}
	used, ok := e.of("connection table", unit.Ratio, func(r *result.Run) (most float64, ok bool) {
		for _, p := range places {
			v, has := r.Value(metric.OfCounter(p.prefix+metric.ConntrackUsed) + p.suffix)
			most, ok = max(most, v.Number), ok || has
		}
		return most, true
	})
	if ok && used.worse >= fullTable && used.judged(1, leastFuller) == Supported {
		return finding{state: Supported, evidence: []string{used.String()}}
	}
	return f
}

// judgePressure compares how long something waited for a CPU.
func judgePressure(e evidence) finding {
	d, ok := e.of("share of the time in which something waited for a CPU", unit.Ratio,
		func(r *result.Run) (sum float64, ok bool) {
			for _, p := range places {
				v, _ := r.Value(metric.OfCounter(p.prefix+metric.CPUPressure) + p.suffix)
				sum = max(sum, v.Number)
			}
			return sum / r.Window, uncounted(r) == "" && r.Window > 0
		})
	if !ok {
		return unseen(e.whyUncounted())
	}
	return finding{state: d.judged(1, leastPressure), evidence: []string{d.String()}}
}
