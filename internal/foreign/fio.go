package foreign

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const wantedFio = "the JSON that fio --output-format=json or json+ prints"

// fioRun is fio's JSON, as in 3.0 to 3.42.
type fioRun struct {
	Version string            `json:"fio version"`
	Time    float64           `json:"timestamp"` // of the end
	Global  map[string]string `json:"global options"`
	Jobs    []fioJob          `json:"jobs"`
	Clients []json.RawMessage `json:"client_stats"`
}

type fioJob struct {
	Name    string            `json:"jobname"`
	Start   float64           `json:"job_start"` // ms since 1970, in newer versions
	Group   int               `json:"groupid"`
	Error   int               `json:"error"`
	Options map[string]string `json:"job options"`
	Read    fioSide           `json:"read"`
	Write   fioSide           `json:"write"`
	Trim    fioSide           `json:"trim"`
	Sync    struct {
		Latency fioLatency `json:"lat_ns"`
	} `json:"sync"`
	User   float64 `json:"usr_cpu"` // per cent of a CPU
	System float64 `json:"sys_cpu"`
}

type fioSide struct {
	Bytes     float64    `json:"io_bytes"`
	Bandwidth float64    `json:"bw_bytes"` // per second
	KiB       float64    `json:"bw"`       // per second; all there is in kubestr's copy
	Rate      float64    `json:"iops"`
	Runtime   float64    `json:"runtime"` // ms, without the ramp
	Total     float64    `json:"total_ios"`
	Short     float64    `json:"short_ios"`
	Dropped   float64    `json:"drop_ios"`
	Latency   fioLatency `json:"clat_ns"`
}

// fioLatency is in ns. Percentiles are there unless fio was told otherwise; bins with json+ alone.
type fioLatency struct {
	Min         float64            `json:"min"`
	Max         float64            `json:"max"`
	Mean        float64            `json:"mean"`
	N           float64            `json:"N"`
	Percentiles map[string]float64 `json:"percentile"`
	Bins        map[string]float64 `json:"bins"`
}

// readFio reads every job that moved data, reads and writes apart. Jobs of one name and group are
// parts of one measurement (numjobs without group_reporting).
func readFio(name string, data []byte) ([]Record, error) {
	docs, err := documents(name, data, wantedFio)
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, d := range docs {
		runs, facts, err := fioRuns(d)
		if err != nil {
			return nil, err
		}
		for i, run := range runs {
			found, err := run.records(d, facts[i])
			if err != nil {
				return nil, err
			}
			records = append(records, found...)
		}
	}
	return records, nil
}

// fioRuns takes a document apart: fio's own, or kubestr's list of tests with fio's in each.
func fioRuns(d document) (runs []fioRun, facts [][]result.Fact, err error) {
	if d.text[0] != '[' {
		var run fioRun
		if err := d.decode(&run, wantedFio); err != nil {
			return nil, nil, err
		}
		return []fioRun{run}, [][]result.Fact{nil}, nil
	}
	var tests []struct {
		Raw struct {
			Size   string `json:"size"`
			Class  string `json:"storageClass"`
			Result fioRun `json:"result"`
		} `json:"Raw"`
	}
	if err := d.decode(&tests, wantedFio); err != nil {
		return nil, nil, err
	}
	for _, t := range tests {
		runs = append(runs, t.Raw.Result)
		facts = append(facts, []result.Fact{{Name: "storage-class", Value: orUnknown(t.Raw.Class)}, {Name: "volume-size", Value: orUnknown(t.Raw.Size)}})
	}
	if len(runs) == 0 {
		return nil, nil, d.fail("the document", "the list is empty; wanted %s", wantedFio)
	}
	return runs, facts, nil
}

func (run fioRun) records(d document, environment []result.Fact) ([]Record, error) {
	if len(run.Jobs) == 0 {
		if len(run.Clients) > 0 {
			return nil, d.fail("client_stats", "it is the output of a fio client, of several machines at once; import each machine's own")
		}
		return nil, d.fail("jobs", "there is none; wanted %s", wantedFio)
	}
	names := run.names()
	var records []Record
	for i, group := range run.groups() {
		job := run.Jobs[group[0]]
		found := run.sides(group)
		if len(found) == 0 {
			found = []Record{{Measurement: result.Measurement{Invalid: []string{"the job moved no data"}}}}
		}
		for _, r := range found {
			r.Workload = names[i] + r.Workload
			r.Metric = cmp.Or(r.Metric, run.metric(job))
			r.Tool, r.Text, r.Environment = "fio", d.text, environment
			r.Place = d.place(fmt.Sprintf("jobs[%d]", group[0]))
			r.Start = run.start(job)
			r.Facts = append(run.facts(job), r.Facts...)
			if job.Error != 0 {
				r.Invalid = append(r.Invalid, fmt.Sprintf("fio says that the job failed with error %d", job.Error))
			}
			records = append(records, r)
		}
	}
	return records, nil
}

// start is when the job began, or for want of that when fio printed its output.
func (run fioRun) start(job fioJob) time.Time {
	const latest = 253402300800 // the year 10000
	switch {
	case job.Start > 0 && job.Start < latest*1e3:
		return time.UnixMilli(int64(job.Start)).UTC()
	case run.Time > 0 && run.Time < latest:
		return time.Unix(int64(run.Time), 0).UTC()
	}
	return time.Time{}
}

// groups are the indices of jobs that belong together, in order.
func (run fioRun) groups() [][]int {
	var all [][]int
	at := map[string]int{}
	for i, job := range run.Jobs {
		key := fmt.Sprintf("%d %s", job.Group, job.Name)
		if n, seen := at[key]; seen {
			all[n] = append(all[n], i)
			continue
		}
		at[key] = len(all)
		all = append(all, []int{i})
	}
	return all
}

// names gives each group the name that follows from its options, randread-4k-qd1, or fio's own name of
// the job where they are not known or two jobs have the same.
func (run fioRun) names() []string {
	var names []string
	count := map[string]int{}
	for _, group := range run.groups() {
		name := run.describe(run.Jobs[group[0]])
		count[name]++
		names = append(names, name)
	}
	for i, group := range run.groups() {
		if names[i] == "" || count[names[i]] > 1 {
			names[i] = orUnknown(run.Jobs[group[0]].Name)
		}
		names[i] = "storage/" + names[i]
	}
	return names
}

func (run fioRun) option(job fioJob, names ...string) string {
	for _, name := range names {
		if v := cmp.Or(job.Options[name], run.Global[name]); v != "" {
			return v
		}
	}
	return ""
}

func (run fioRun) describe(job fioJob) string {
	rw, size := run.option(job, "rw", "readwrite"), run.option(job, "bs", "blocksize")
	if rw == "" || size == "" {
		return ""
	}
	name := rw
	if mix := run.option(job, "rwmixread"); mix != "" && strings.HasSuffix(rw, "rw") {
		name += mix
	}
	name += "-" + strings.ToLower(size) + "-qd" + cmp.Or(run.option(job, "iodepth"), "1")
	if n := run.option(job, "numjobs"); n != "" && n != "1" {
		name += "-jobs" + n
	}
	for _, sync := range []string{"fsync", "fdatasync"} {
		if v := run.option(job, sync); v != "" && v != "0" {
			name += "-" + sync
		}
	}
	return name
}

// metric is what the job is for: latency at depth 1, bandwidth with large blocks, else operations.
func (run fioRun) metric(job fioJob) string {
	size, err := unit.ParseSize(strings.ToUpper(strings.TrimSuffix(strings.ToLower(run.option(job, "bs", "blocksize")), "b")) + "iB")
	switch {
	case err == nil && size >= 64<<10:
		return "throughput"
	case cmp.Or(run.option(job, "iodepth"), "1") == "1" && err == nil && cmp.Or(run.option(job, "numjobs"), "1") == "1":
		return "p50"
	}
	return "rate"
}

// sides are the reads, writes and trims of a group of jobs that did any. The workload of each is the
// suffix of the name that is needed where there is more than one.
func (run fioRun) sides(group []int) []Record {
	var records []Record
	var names []string
	for _, s := range []struct {
		name string
		of   func(fioJob) fioSide
	}{{"read", func(j fioJob) fioSide { return j.Read }}, {"write", func(j fioJob) fioSide { return j.Write }}, {"trim", func(j fioJob) fioSide { return j.Trim }}} {
		var parts []fioSide
		for _, i := range group {
			if p := s.of(run.Jobs[i]); p.Bytes > 0 || p.Total > 0 || p.Rate > 0 {
				parts = append(parts, p)
			}
		}
		if len(parts) > 0 {
			records = append(records, fioRecord(parts))
			names = append(names, s.name)
		}
	}
	if len(records) > 1 {
		for i := range records {
			records[i].Workload = "/" + names[i]
		}
	}
	for i := range records {
		run.finish(&records[i], group)
	}
	return records
}

// finish adds what fio does not tell apart by reads and writes.
func (run fioRun) finish(r *Record, group []int) {
	var cpu float64
	for _, i := range group {
		cpu += (run.Jobs[i].User + run.Jobs[i].System) / 100
	}
	v := values(r.Values)
	v.add("cpu-agents", unit.Ratio, result.Neutral, cpu)
	if sync := run.Jobs[group[0]].Sync.Latency; len(group) == 1 && sync.N > 0 {
		v.latency("sync-", sync)
		if _, ok := sync.Percentiles["99.000000"]; ok {
			r.Metric = "sync-p99" // what a database waits for
		}
	}
	r.Values = v
}

func fioRecord(parts []fioSide) Record {
	var r Record
	var v values
	var bits, rate, total, lost float64
	for _, p := range parts {
		bits += 8 * cmp.Or(p.Bandwidth, p.KiB*1024)
		rate += p.Rate
		total += p.Total
		lost += p.Short + p.Dropped
		r.Window = max(r.Window, p.Runtime/1e3)
	}
	v.add("throughput", unit.BitPerSecond, result.Higher, bits)
	v.add("rate", unit.PerSecond, result.Higher, rate)
	if total > 0 && lost > 0 {
		v.add("failed", unit.Ratio, result.Lower, lost/total)
	}
	bins := mergedBins(parts)
	switch {
	case len(parts) == 1:
		v.latency("", parts[0].Latency)
	case bins != nil:
		v.ofHistogram(bins)
	default:
		r.Warnings = append(r.Warnings, fmt.Sprintf("the latencies of %d jobs cannot be merged from their percentiles; use group_reporting or json+", len(parts)))
	}
	if bins != nil {
		if encoded, err := bins.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
			r.Histograms = []result.Histogram{{Name: "latency", Unit: "ns", Count: bins.TotalCount(), Encoded: string(encoded)}}
		}
	}
	if !usable(r.Window) || r.Window < 0 {
		r.Window = 0
	}
	r.Values = v
	return r
}

// latency adds what fio says of a distribution, with a prefix to the metrics' names.
func (v *values) latency(prefix string, l fioLatency) {
	if l.N <= 0 && l.Mean <= 0 {
		return
	}
	for _, p := range []struct{ key, metric string }{{"50.000000", "p50"}, {"90.000000", "p90"}, {"95.000000", "p95"},
		{"99.000000", "p99"}, {"99.900000", "p99.9"}, {"99.990000", "p99.99"}} {
		if ns, ok := l.Percentiles[p.key]; ok {
			v.add(prefix+p.metric, unit.Second, result.Lower, ns/1e9)
		}
	}
	v.add(prefix+"mean", unit.Second, result.Lower, l.Mean/1e9)
	v.add(prefix+"min", unit.Second, result.Lower, l.Min/1e9)
	v.add(prefix+"max", unit.Second, result.Lower, l.Max/1e9)
	v.add(prefix+"operations", unit.Count, result.Neutral, l.N)
}

func (v *values) ofHistogram(h *hdrhistogram.Histogram) {
	for _, p := range []struct {
		at     float64
		metric string
	}{{50, "p50"}, {90, "p90"}, {95, "p95"}, {99, "p99"}, {99.9, "p99.9"}, {99.99, "p99.99"}} {
		v.add(p.metric, unit.Second, result.Lower, float64(h.ValueAtPercentile(p.at))/1e9)
	}
	v.add("mean", unit.Second, result.Lower, h.Mean()/1e9)
	v.add("min", unit.Second, result.Lower, float64(h.Min())/1e9)
	v.add("max", unit.Second, result.Lower, float64(h.Max())/1e9)
	v.add("operations", unit.Count, result.Neutral, float64(h.TotalCount()))
}

// longest is the greatest latency in ns that a histogram takes: an hour.
const longest = 3600 * 1e9

// mergedBins is the histogram of all parts, nil unless each of them has its bins.
func mergedBins(parts []fioSide) *hdrhistogram.Histogram {
	h := hdrhistogram.New(1, longest, 3)
	for _, p := range parts {
		if len(p.Latency.Bins) == 0 {
			return nil
		}
		for _, key := range slices.Sorted(maps.Keys(p.Latency.Bins)) {
			ns, err := strconv.ParseInt(key, 10, 64)
			count := p.Latency.Bins[key]
			if err != nil || ns < 0 || !(count >= 0 && count < 1e15) || h.RecordValues(max(ns, 1), int64(count)) != nil {
				return nil
			}
		}
	}
	return h
}

// facts are how the job was done.
func (run fioRun) facts(job fioJob) []result.Fact {
	facts := []result.Fact{{Name: "tool.version", Value: orUnknown(run.Version)}, {Name: "fio.job", Value: orUnknown(job.Name)}}
	for _, o := range []string{"ioengine", "direct", "size", "runtime", "ramp_time", "rate_iops"} {
		if v := run.option(job, o); v != "" {
			facts = append(facts, result.Fact{Name: "fio." + strings.ReplaceAll(o, "_", "-"), Value: v})
		}
	}
	return facts
}
