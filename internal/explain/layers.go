package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Thresholds of reports about layers.
const (
	leastCost   = 0.02 // minimum difference of the total, relative to the better target's CPU time
	leastLayer  = 0.03 // minimum share of the total difference
	mostLayers  = 4    // maximum named in a line
	fullCPU     = 0.95 // share of the window from which the CPU limits throughput
	idleCPU     = 0.6  // share of the window up to which it certainly does not
	sampledFact = "layers.client"
)

// costs are the metrics that layers are parts of.
var costs = []struct{ metric, name string }{
	{metric.CPUPerOp, "CPU time per operation"}, {metric.CPUPerGB, "CPU time per GB"},
}

// judgeLayers compares the CPU time of the path by kernel layer.
func judgeLayers(e evidence) finding {
	if e.cost == "" {
		return unobservable(missingSamplesReason(e))
	}
	whole, ok := e.totalCost()
	switch {
	case !ok:
		return unobservable("there are too few blocks with samples")
	case e.hasIdleCPU():
		return finding{state: Contradicted, evidence: []string{"no CPU is busy enough to limit the throughput"}}
	}
	f := finding{state: whole.state(1, leastCost*whole.better)}
	if f.state != Supported {
		f.evidence = []string{whole.subject + " " + whole.change()}
		return f
	}
	f.share = e.costShare(whole)
	first := whole.subject + " " + whole.change()
	var most []string
	var rest []string
	for _, layer := range e.layers {
		if layer.estimate < leastLayer*whole.estimate {
			continue
		}
		if len(most) < mostLayers {
			most = append(most, layer.subject+" "+signed(layer.estimate, layer.unit))
		}
		rest = append(rest, layer.subject+" "+layer.change())
	}
	if len(most) > 0 {
		first += ": " + strings.Join(most, ", ")
	}
	f.evidence = append([]string{first}, rest...)
	return f
}

// judgePrograms compares how busy other programs kept the CPUs. Some of them, such as the proxies of a mesh, may be on
// the path; the others run in any case, so it compares CPU time per second, not per operation.
func judgePrograms(e evidence) finding {
	if e.cost == "" {
		return unobservable(missingSamplesReason(e))
	}
	d, ok := e.pairedDifference("CPUs busy with other programs", unit.Count, func(r *result.Run) (float64, bool) {
		v, _ := r.Value(metric.OfLayer(e.cost, metric.Programs))
		per, amount := metric.Rate, 1.0
		if e.cost == metric.CPUPerGB {
			per, amount = metric.Throughput, 8e9
		}
		rate, has := r.Value(per)
		_, ok := sampledCPUTime(r, e.cost)
		return v.Number * rate.Number / amount, has && ok
	})
	if !ok {
		return unobservable("there are too few blocks with samples")
	}
	return finding{state: d.state(1, leastPrograms), evidence: []string{d.String()}}
}

// totalCost returns the difference in all sampled CPU time except that of other programs.
func (e evidence) totalCost() (difference, bool) {
	i := slices.IndexFunc(costs, func(c struct{ metric, name string }) bool { return c.metric == e.cost })
	return e.pairedDifference(costs[i].name, unit.Second, func(r *result.Run) (float64, bool) {
		return sampledCPUTime(r, e.cost)
	})
}

// kernelCost returns the difference in the sampled CPU time of the kernel. Layers of the path are compared with it:
// user space of the agents takes some time per second, so that it grows with each byte of a slower transfer.
func (e evidence) kernelCost() (difference, bool) {
	return e.pairedDifference("CPU time of the kernel", unit.Second, func(r *result.Run) (float64, bool) {
		sum, ok := sampledCPUTime(r, e.cost)
		user, _ := r.Value(metric.OfLayer(e.cost, inUserSpace))
		return sum - user.Number, ok
	})
}

// inUserSpace is the layer of the agents' own code.
const inUserSpace = "user"

// sampledCost returns the cost metric whose layers the runs have; "" if they have none.
func (e evidence) sampledCost() string {
	for _, cost := range costs {
		has := func(p pair) bool {
			_, worse := sampledCPUTime(p.worse, cost.metric)
			_, better := sampledCPUTime(p.better, cost.metric)
			return worse && better
		}
		if slices.ContainsFunc(e.pairs, has) {
			return cost.metric
		}
	}
	return ""
}

// missingSamplesReason returns why there are no samples.
func missingSamplesReason(e evidence) string {
	for _, p := range e.pairs {
		for _, r := range []*result.Run{p.worse, p.better} {
			if why := r.Fact(sampledFact); why != "" {
				return why
			}
		}
	}
	return "the runs have no samples of CPU time"
}

// sampledCPUTime returns the CPU time of all layers of a run except other programs.
func sampledCPUTime(r *result.Run, cost string) (sum float64, ok bool) {
	for _, v := range r.Values {
		if of, layer := metric.Layer(v.Metric); of == cost && layer != metric.Programs {
			sum, ok = sum+v.Number, true
		}
	}
	return sum, ok
}

// costlierLayers returns the layers in which the worse target certainly needs more time, the largest difference first.
// A layer without samples counts as 0.
func (e evidence) costlierLayers() []difference {
	if e.cost == "" {
		return nil
	}
	var list []difference
	for _, layer := range metric.Layers() {
		if layer.Name == metric.Programs {
			continue
		}
		name := metric.OfLayer(e.cost, layer.Name)
		d, ok := e.pairedDifference(layer.Name, unit.Second, func(r *result.Run) (float64, bool) {
			v, _ := r.Value(name)
			_, ok := sampledCPUTime(r, e.cost)
			return v.Number, ok
		})
		if ok && d.lo > 0 {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b difference) int { return -cmp.Compare(a.estimate, b.estimate) })
	return list
}

// costShare returns the part of the row's difference that CPU time accounts for. For a latency it is the time itself,
// because the steps of an operation that waits for its answer are sequential; for throughput it is the capacity that a
// full CPU loses.
func (e evidence) costShare(whole difference) *Share {
	switch {
	case e.row.Unit == unit.Second && e.cost == metric.CPUPerOp:
		return e.shareOf(whole)
	case e.row.Metric == metric.Throughput && e.cpuFull():
		var parts []float64
		for _, p := range e.pairs {
			worse, ok1 := sampledCPUTime(p.worse, e.cost)
			better, ok2 := sampledCPUTime(p.better, e.cost)
			if !ok1 || !ok2 {
				continue
			}
			slow, _ := p.worse.Value(metric.Throughput)
			fast, _ := p.better.Value(metric.Throughput)
			parts = append(parts, math.Log(worse/better)/math.Log(fast.Number/slow.Number))
		}
		return newShare(parts)
	}
	return nil
}

// cpuFull reports whether a CPU was full on both targets.
func (e evidence) cpuFull() bool {
	d, ok := e.metricDifference(metric.CPUBusiest)
	return ok && min(d.worse, d.better) >= fullCPU
}

// hasIdleCPU reports whether the throughput of the worse target cannot be limited by CPU time.
func (e evidence) hasIdleCPU() bool {
	d, ok := e.metricDifference(metric.CPUBusiest)
	return e.row.Metric == metric.Throughput && ok && d.worse <= idleCPU
}
