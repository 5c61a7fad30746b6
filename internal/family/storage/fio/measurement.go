package fio

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Measure returns the measurement of a group for importers: values in base units, histograms, and the window.
// Percentiles are fio's, whatever the number of operations.
func (g Group) Measure() result.Measurement {
	b := family.NewBuilder(metricsOf(allParts, true))
	b.AnySamples = true
	m := &measurement{b}
	m.group(g)
	return m.Measurement
}

// A measurement is built from fio's output.
type measurement struct{ *family.Builder }

// partsOf are the sides of a job, by the prefix of their metrics.
var partsOf = []struct {
	name string
	of   func(Job) Side
}{
	{metric.Reads, func(j Job) Side { return j.Read }},
	{metric.Writes, func(j Job) Side { return j.Write }},
	{metric.Trims, func(j Job) Side { return j.Trim }},
}

// group adds the metrics of a group. If a job does more than one kind of operation, names without a prefix are of all
// its operations, and read-…, write-… and trim-… of one kind; sync-… is of the fsync or fdatasync after writes.
func (m *measurement) group(g Group) {
	byPart, all := map[string][]Side{}, []Side(nil)
	for _, p := range partsOf {
		for _, j := range g.Jobs {
			if s := p.of(j); s.moved() {
				byPart[p.name], all = append(byPart[p.name], s), append(all, s)
			}
		}
	}
	switch len(byPart) {
	case 0:
		m.Refuse(result.NothingDone, "the job moved no data")
		return
	case 1:
		m.part("", all)
	default:
		m.total(all)
		for _, p := range partsOf {
			if sides := byPart[p.name]; len(sides) > 0 {
				m.part(p.name, sides)
			}
		}
	}
	m.syncs(g.Jobs)
	m.Add(metric.CPUAgents, g.cpu())
}

// cpu returns how many CPUs fio's processes or threads used; fio reports the mean per process.
func (g Group) cpu() float64 {
	var sum float64
	for _, j := range g.Jobs {
		sum += (j.User + j.System) / 100
	}
	return sum * float64(g.threads()) / float64(len(g.Jobs))
}

// part adds the metrics of one side of several jobs.
func (m *measurement) part(prefix string, sides []Side) {
	m.sums(prefix, sides)
	bins := merged(latenciesOf(sides))
	switch {
	case len(sides) == 1:
		m.latencies(prefix, sides[0].latency(), bins)
	case bins != nil:
		m.latencies(prefix, Latency{}, bins)
	default:
		m.Warn(result.Unmergeable, "the latencies of %d jobs cannot be merged from their percentiles; "+
			"use group_reporting or json+", len(sides))
	}
}

// total adds the metrics of all operations of a job that reads and writes; latencies only if there are bins.
func (m *measurement) total(sides []Side) {
	m.sums("", sides)
	if bins := merged(latenciesOf(sides)); bins != nil {
		m.latencies("", Latency{}, bins)
	}
}

func latenciesOf(sides []Side) []Latency {
	var list []Latency
	for _, s := range sides {
		list = append(list, s.latency())
	}
	return list
}

func (m *measurement) sums(prefix string, sides []Side) {
	var bits, rate, total, lost float64
	for _, s := range sides {
		bits += 8 * cmp.Or(s.Bandwidth, s.KiB*1024)
		rate += s.Rate
		total += s.Total
		lost += s.Short + s.Dropped
		if seconds := s.Runtime / 1e3; seconds >= 0 && seconds < longestRun {
			m.Window = math.Max(m.Window, seconds)
		}
	}
	m.Add(prefix+metric.Throughput, bits)
	m.Add(prefix+metric.Rate, rate)
	if total > 0 && lost > 0 {
		m.Add(prefix+metric.Failed, lost/total)
	}
}

func (m *measurement) syncs(jobs []Job) {
	var list []Latency
	for _, j := range jobs {
		if l := j.Sync.Latency.of(j.Sync.Total); l.N > 0 || l.Mean > 0 {
			list = append(list, l)
		}
	}
	bins := merged(list)
	switch {
	case len(list) == 1:
		m.latencies(metric.Sync, list[0], bins)
	case bins != nil:
		m.latencies(metric.Sync, Latency{}, bins)
	}
}

// latencies adds a distribution and its histogram.
func (m *measurement) latencies(part string, l Latency, bins *hdrhistogram.Histogram) {
	d, names := newDistribution(l, bins), latencies
	switch {
	case d.N <= 0 && d.Latency.Mean <= 0:
		names = percentiles
	case d.N <= 0: // their number is not known
		names = slices.DeleteFunc(slices.Clone(latencies), func(name string) bool { return name == metric.Operations })
	}
	m.Latencies(part, d, names...)
	if bins == nil {
		return
	}
	if encoded, err := bins.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		m.Histogram(part, bins.TotalCount(), string(encoded))
	}
}

// A distribution has its percentiles from the bins if there are any, else from fio.
type distribution struct {
	Latency
	bins *hdrhistogram.Histogram
}

func newDistribution(l Latency, bins *hdrhistogram.Histogram) distribution {
	if bins != nil && bins.TotalCount() == 0 {
		bins = nil
	}
	if bins != nil && l.N <= 0 && l.Mean <= 0 {
		l = Latency{Min: float64(bins.Min()), Max: float64(bins.Max()), Mean: bins.Mean(), N: float64(bins.TotalCount())}
	}
	return distribution{l, bins}
}

func (d distribution) Min() float64  { return d.Latency.Min / 1e9 }
func (d distribution) Max() float64  { return d.Latency.Max / 1e9 }
func (d distribution) Mean() float64 { return d.Latency.Mean / 1e9 }

func (d distribution) Count() int64 {
	if d.N > 0 && d.N < 1e15 {
		return int64(d.N)
	}
	return 0
}

func (d distribution) Quantile(q float64) float64 {
	if d.bins != nil {
		return float64(d.bins.ValueAtPercentile(q*100)) / 1e9
	}
	if ns, ok := d.Percentiles[fmt.Sprintf("%.6f", q*100)]; ok {
		return ns / 1e9
	}
	return math.NaN()
}

// longestRun is the longest credible runtime, in seconds.
const longestRun = 1e9

// longest is the largest latency in a histogram, in ns: one hour.
const longest = 3600 * 1e9

// merged returns the histogram of all parts; nil unless each of them has valid bins.
func merged(parts []Latency) *hdrhistogram.Histogram {
	if len(parts) == 0 {
		return nil
	}
	h := hdrhistogram.New(1, longest, 3)
	for _, p := range parts {
		if len(p.Bins) == 0 {
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(p.Bins)) {
			ns, err := strconv.ParseInt(key, 10, 64)
			count := p.Bins[key]
			if err != nil || ns < 0 || !(count >= 0 && count < 1e15) || h.RecordValues(max(ns, 1), int64(count)) != nil {
				return nil
			}
		}
	}
	return h
}

// Facts returns how a job was carried out, by its options.
func (g Group) Facts() []result.Fact {
	job := g.Jobs[0]
	facts := []result.Fact{{Name: "tool.version", Value: family.OrUnknown(g.out.Version)},
		{Name: "fio.job", Value: family.OrUnknown(job.Name)}}
	for _, o := range options {
		if v := g.out.Option(job, o); v != "" {
			facts = append(facts, result.Fact{Name: "fio." + strings.ReplaceAll(o, "_", "-"), Value: v})
		}
	}
	return facts
}

// options are the options of a job that its numbers depend on.
var options = []string{"ioengine", "direct", "iodepth", "numjobs", "size", "runtime",
	"ramp_time", "rate_iops", "gtod_reduce", "filename", "cpus_allowed",
}
