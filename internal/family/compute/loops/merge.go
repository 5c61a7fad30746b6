package loops

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// latencies are the statistics of single operations.
var latencies = []string{metric.P50, metric.P90, metric.P99, metric.P999, metric.Min, metric.Max, metric.Mean}

// metricsOf returns the metrics of a workload, the one that verdicts are about first.
func metricsOf(w compute.Workload) []metric.Metric {
	var names []string
	switch main := w.Traits().Metric; main {
	case metric.P50:
		names = append(slices.Clone(latencies), metric.Rate)
	case "", metric.Rate:
		names = []string{metric.Rate}
	default:
		names = []string{main}
	}
	if w.CPUs != compute.OneCPU {
		names = append(names, metric.Scaling)
	}
	if w.Busy() {
		names = append(names, metric.CPUOthers)
	}
	return metric.Of("", append(names, metric.CPUAgents, metric.CPUSteal, metric.SwitchesVoluntary,
		metric.SwitchesInvoluntary, compute.Throttled)...)
}

// A run is a report with its circumstances.
type run struct {
	Workload compute.Workload
	Window   time.Duration // planned
	CPULimit string        // that the user set; empty: none
	Report   computeload.Report
}

// A builder builds the measurement of a run.
type builder struct {
	run
	*family.Builder
}

// merge makes a measurement of a run. It is pure.
func merge(r run) (result.Measurement, error) {
	latency, err := netload.DecodeHistogram(r.Report.Latency)
	if err != nil {
		return result.Measurement{}, fmt.Errorf("agent's report: %w", err)
	}
	b := &builder{r, family.NewBuilder(metricsOf(r.Workload))}
	for _, t := range r.Report.Threads {
		b.Measurement.Window = max(b.Measurement.Window, t.Wall)
	}
	b.addWork(latency)
	b.addUse()
	b.addFacts()
	b.gates()
	b.RequireMetric(r.Workload.Traits().Metric)
	return b.Measurement, nil
}

// rate returns what all threads counted per second.
func (b *builder) rate() (sum float64) {
	for _, t := range b.Report.Threads {
		sum += t.Rate()
	}
	return sum
}

// addWork adds the metrics of the workload itself, and their series.
func (b *builder) addWork(latency *netload.Histogram) {
	rate, main := b.rate(), b.Workload.Traits().Metric
	step := computeload.Step.Seconds()
	each := slices.Clone(b.Report.Steps)
	if n := int(b.run.Window / computeload.Step); n < len(each) {
		each = each[:n] // without the last one, which is shorter
	}
	for i, n := range each {
		each[i] = n / step
	}
	switch main {
	case metric.P50:
		_ = b.Distribution("", latency, latencies...) // too few operations leave percentiles out
		b.Histogram("", latency.Count(), b.Report.Latency)
		b.Add(metric.Rate, rate)
		b.Steps(metric.Rate, step, each)
	case metric.Mean:
		if rate > 0 {
			b.Add(metric.Mean, float64(len(b.Report.Threads))/rate)
		}
	default:
		if rate > 0 {
			b.Add(main, rate)
		}
		b.Steps(main, step, each)
	}
	if alone := b.Report.Alone; alone != nil && alone.Rate() > 0 {
		b.Add(metric.Scaling, rate/alone.Rate()/float64(len(b.Report.Threads)))
	}
}

// addUse adds the use of CPU time.
func (b *builder) addUse() {
	var used, wall, voluntary, involuntary float64
	for _, t := range b.Report.Threads {
		used, wall = used+t.CPUTime, max(wall, t.Wall)
		voluntary, involuntary = voluntary+float64(t.Voluntary), involuntary+float64(t.Involuntary)
	}
	if wall > 0 {
		b.Add(metric.CPUAgents, used/wall)
		b.Add(metric.SwitchesVoluntary, voluntary/wall)
		b.Add(metric.SwitchesInvoluntary, involuntary/wall)
	}
	if b.Report.Machine.Sum() > 0 {
		b.Add(metric.CPUSteal, b.stolen())
	}
}

// addFacts adds where and how the run was carried out.
func (b *builder) addFacts() {
	b.Fact("tool.version", b.Report.Version)
	b.Fact("workload", b.Workload.Title())
	var used []int
	var siblings, nodes, before, after []string
	for _, c := range b.Report.CPUs {
		used = append(used, c.Number)
		siblings = append(siblings, machine.FormatCPUs(c.Siblings))
		node := result.Unknown
		if c.Node >= 0 {
			node = strconv.Itoa(c.Node)
		}
		nodes = append(nodes, node)
		before, after = append(before, frequency(c.Before)), append(after, frequency(c.After))
	}
	b.Fact("cpu.client", machine.FormatCPUs(used))
	b.Fact("cpu.siblings", distinct(siblings, "; "))
	b.Fact("cpu.numa-nodes", distinct(nodes, ","))
	b.Fact("cpu.frequency.before", distinct(before, ", "))
	b.Fact("cpu.frequency.after", distinct(after, ", "))
	if b.Report.Huge >= 0 {
		b.Fact("memory.huge-pages", unit.Format(b.Report.Huge, unit.Ratio))
	}
	b.Fact("warmup.left-out", strconv.FormatUint(b.Report.Left, 10))
}

// frequency returns a frequency in Hz as text.
func frequency(hz float64) string {
	if hz <= 0 {
		return result.Unknown
	}
	return fmt.Sprintf("%.0f MHz", hz/1e6)
}

// distinct joins different texts, sorted.
func distinct(texts []string, separator string) string {
	list := slices.Compact(slices.Sorted(slices.Values(texts)))
	return cmp.Or(strings.Join(list, separator), result.Unknown)
}
