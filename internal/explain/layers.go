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

// Limits of what a reader is told of layers.
const (
	leastCost   = 0.02 // of the better target's CPU time, by which the whole has to differ
	leastLayer  = 0.03 // of the whole difference
	mostLayers  = 4    // named in a line
	fullCPU     = 0.95 // of the window, from where on the CPU limits throughput
	sampledFact = "layers.client"
)

// costs are the metrics that layers are parts of.
var costs = []struct{ metric, name string }{
	{metric.CPUPerOp, "CPU time per operation"}, {metric.CPUPerGB, "CPU time per GB"},
}

// judgeLayers compares the CPU time of the path by layer of the kernel.
func judgeLayers(e evidence) finding {
	if e.cost == "" {
		return unseen(unsampled(e))
	}
	whole, ok := e.whole()
	if !ok {
		return unseen("there are too few blocks with samples")
	}
	f := finding{state: whole.judged(1, leastCost*whole.better)}
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

// judgePrograms compares how busy CPUs were with other programs. Some of them may be on the path, such as a mesh's
// proxies; the rest of them is there in any case, so that it is time per second that counts and not per operation.
func judgePrograms(e evidence) finding {
	if e.cost == "" {
		return unseen(unsampled(e))
	}
	d, ok := e.of("CPUs busy with other programs", unit.Count, func(r *result.Run) (float64, bool) {
		v, _ := r.Value(metric.OfLayer(e.cost, metric.Programs))
		per, amount := metric.Rate, 1.0
		if e.cost == metric.CPUPerGB {
			per, amount = metric.Throughput, 8e9
		}
		rate, has := r.Value(per)
		_, ok := sampled(r, e.cost)
		return v.Number * rate.Number / amount, has && ok
	})
	if !ok {
		return unseen("there are too few blocks with samples")
	}
	return finding{state: d.judged(1, leastPrograms), evidence: []string{d.String()}}
}

// whole is the difference in all of the sampled CPU time, but for other programs'.
func (e evidence) whole() (difference, bool) {
	i := slices.IndexFunc(costs, func(c struct{ metric, name string }) bool { return c.metric == e.cost })
	return e.of(costs[i].name, unit.Second, func(r *result.Run) (float64, bool) { return sampled(r, e.cost) })
}

// sampledCost is the cost that runs have layers of; empty if they have none.
func (e evidence) sampledCost() string {
	for _, cost := range costs {
		has := func(p pair) bool {
			_, worse := sampled(p.worse, cost.metric)
			_, better := sampled(p.better, cost.metric)
			return worse && better
		}
		if slices.ContainsFunc(e.pairs, has) {
			return cost.metric
		}
	}
	return ""
}

// unsampled says why there are no samples.
func unsampled(e evidence) string {
	for _, p := range e.pairs {
		for _, r := range []*result.Run{p.worse, p.better} {
			if why := r.Fact(sampledFact); why != "" {
				return why
			}
		}
	}
	return "the runs have no samples of CPU time"
}

// sampled is the CPU time of all layers of a run, but for what other programs took.
func sampled(r *result.Run, cost string) (sum float64, ok bool) {
	for _, v := range r.Values {
		if of, layer := metric.Layer(v.Metric); of == cost && layer != metric.Programs {
			sum, ok = sum+v.Number, true
		}
	}
	return sum, ok
}

// costlier are the layers in which the worse target certainly takes more time, the largest difference first. A layer
// without a sample took none.
func (e evidence) costlier() []difference {
	if e.cost == "" {
		return nil
	}
	var list []difference
	for _, layer := range metric.Layers() {
		if layer.Name == metric.Programs {
			continue
		}
		name := metric.OfLayer(e.cost, layer.Name)
		d, ok := e.of(layer.Name, unit.Second, func(r *result.Run) (float64, bool) {
			v, _ := r.Value(name)
			_, ok := sampled(r, e.cost)
			return v.Number, ok
		})
		if ok && d.lo > 0 {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b difference) int { return -cmp.Compare(a.estimate, b.estimate) })
	return list
}

// costShare is the part of the row's difference that CPU time accounts for: of a latency the time itself, since the
// steps of an operation that waits for its answer come one after another; of throughput what a CPU that is full can no
// longer carry.
func (e evidence) costShare(whole difference) *Share {
	switch {
	case e.row.Unit == unit.Second && e.cost == metric.CPUPerOp:
		return e.shareOf(whole)
	case e.row.Metric == metric.Throughput && e.full():
		var parts []float64
		for _, p := range e.pairs {
			worse, ok1 := sampled(p.worse, e.cost)
			better, ok2 := sampled(p.better, e.cost)
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

// full says whether a CPU was full in all runs.
func (e evidence) full() bool {
	d, ok := e.metric(metric.CPUBusiest)
	return ok && min(d.worse, d.better) >= fullCPU
}
