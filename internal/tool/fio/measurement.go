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

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Measure is what fio says of a group: values in base units, histograms, and the window. Of a job that does more than
// one thing at once the plain names are of all its operations, and read-…, write-… and trim-… of a part of them; sync-…
// is of the fsync or fdatasync after writes.
func (g Group) Measure() result.Measurement {
	m := &measurement{}
	var all []Side
	kinds := 0
	for _, part := range []struct {
		prefix string
		of     func(Job) Side
	}{
		{metric.Reads, func(j Job) Side { return j.Read }},
		{metric.Writes, func(j Job) Side { return j.Write }},
		{metric.Trims, func(j Job) Side { return j.Trim }},
	} {
		var sides []Side
		for _, j := range g.Jobs {
			if s := part.of(j); s.moved() {
				sides = append(sides, s)
			}
		}
		if len(sides) > 0 {
			kinds++
			all = append(all, sides...)
			m.part(part.prefix, sides)
		}
	}
	switch kinds {
	case 0:
		m.Invalid = append(m.Invalid, "the job moved no data")
		return m.Measurement
	case 1:
		m.Measurement = result.Measurement{}
		m.part("", all)
	default:
		parts := m.Measurement
		m.Measurement = result.Measurement{}
		m.total(all)
		m.Values, m.Histograms = append(m.Values, parts.Values...), append(m.Histograms, parts.Histograms...)
		m.Warnings = parts.Warnings
	}
	m.syncs(g.Jobs)
	m.add("", metric.CPUAgents, g.cpu())
	return m.Measurement
}

// cpu is how many CPUs fio's processes or threads used: each job says it per process.
func (g Group) cpu() float64 {
	var sum float64
	for _, j := range g.Jobs {
		sum += (j.User + j.System) / 100
	}
	return sum * float64(g.threads()) / float64(len(g.Jobs))
}

type measurement struct{ result.Measurement }

// usable is the greatest number that is believed to be one.
const usable = 1e18

func (m *measurement) add(prefix, name string, number float64) {
	if number >= 0 && number <= usable {
		m.Values = append(m.Values, result.NewValue(metric.Named(prefix+name), number))
	}
}

// part adds what is known of one side of several jobs.
func (m *measurement) part(prefix string, sides []Side) {
	m.sums(prefix, sides)
	bins := merged(latenciesOf(sides))
	switch {
	case len(sides) == 1:
		m.latency(prefix, sides[0].latency(), bins)
	case bins != nil:
		m.latency(prefix, Latency{}, bins)
	default:
		m.Warnings = append(m.Warnings, fmt.Sprintf("the latencies of %d jobs cannot be merged from their percentiles; use group_reporting or json+", len(sides)))
	}
	m.histogram(prefix, bins)
}

// total adds what is known of all operations of a job that reads and writes; without bins, no latency is.
func (m *measurement) total(sides []Side) {
	m.sums("", sides)
	if bins := merged(latenciesOf(sides)); bins != nil {
		m.latency("", Latency{}, bins)
		m.histogram("", bins)
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
		if seconds := s.Runtime / 1e3; seconds >= 0 && seconds < usable {
			m.Window = math.Max(m.Window, seconds)
		}
	}
	m.add(prefix, metric.Throughput, bits)
	m.add(prefix, metric.Rate, rate)
	if total > 0 && lost > 0 {
		m.add(prefix, metric.Failed, lost/total)
	}
}

func (m *measurement) syncs(jobs []Job) {
	var list []Latency
	for _, j := range jobs {
		if j.Sync.Latency.N > 0 {
			list = append(list, j.Sync.Latency)
		}
	}
	bins := merged(list)
	switch {
	case len(list) == 1:
		m.latency(metric.Sync, list[0], bins)
	case bins != nil:
		m.latency(metric.Sync, Latency{}, bins)
	}
	m.histogram(metric.Sync, bins)
}

// keyOf is how fio names a percentile.
func keyOf(percentile string) string { return fmt.Sprintf("%.6f", metric.Quantile(percentile)*100) }

// latency adds a distribution: percentiles from the bins of all parts where there are any, else as fio gives them.
func (m *measurement) latency(prefix string, l Latency, bins *hdrhistogram.Histogram) {
	if bins != nil && bins.TotalCount() > 0 {
		for _, p := range percentiles {
			m.add(prefix, p, float64(bins.ValueAtPercentile(metric.Quantile(p)*100))/1e9)
		}
	} else {
		for _, p := range percentiles {
			if ns, ok := l.Percentiles[keyOf(p)]; ok {
				m.add(prefix, p, ns/1e9)
			}
		}
	}
	if l.N <= 0 && l.Mean <= 0 {
		if bins == nil || bins.TotalCount() == 0 {
			return
		}
		l = Latency{Min: float64(bins.Min()), Max: float64(bins.Max()), Mean: bins.Mean(), N: float64(bins.TotalCount())}
	}
	m.add(prefix, metric.Mean, l.Mean/1e9)
	m.add(prefix, metric.Min, l.Min/1e9)
	m.add(prefix, metric.Max, l.Max/1e9)
	m.add(prefix, metric.Operations, l.N)
}

func (m *measurement) histogram(prefix string, bins *hdrhistogram.Histogram) {
	if bins == nil || bins.TotalCount() == 0 {
		return
	}
	if encoded, err := bins.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		m.Histograms = append(m.Histograms, result.Histogram{
			Name: prefix + metric.Latency, Unit: "ns", Count: bins.TotalCount(), Encoded: string(encoded),
		})
	}
}

// longest is the greatest latency in ns that a histogram takes: an hour.
const longest = 3600 * 1e9

// merged is the histogram of all parts, nil unless each of them has its bins.
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

// Facts are how a job was done, as its options say.
func (g Group) Facts() []result.Fact {
	job := g.Jobs[0]
	facts := []result.Fact{{Name: "tool.version", Value: orUnknown(g.out.Version)}, {Name: "fio.job", Value: orUnknown(job.Name)}}
	for _, o := range options() {
		if v := g.out.Option(job, o); v != "" {
			facts = append(facts, result.Fact{Name: "fio." + strings.ReplaceAll(o, "_", "-"), Value: v})
		}
	}
	return facts
}

// options are those that say what a job's numbers are of.
func options() []string {
	return []string{"ioengine", "direct", "iodepth", "numjobs", "size", "runtime", "ramp_time", "rate_iops", "gtod_reduce", "filename", "cpus_allowed"}
}

func orUnknown(text string) string {
	if strings.TrimSpace(text) == "" {
		return result.Unknown
	}
	return strings.TrimSpace(text)
}
