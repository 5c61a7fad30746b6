package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedVault = "the JSON of vault-benchmark run with report_mode = \"json\", or of vegeta report -type=json"

// attack is vegeta's report of a test, which vault-benchmark prints for each of its tests. Times are in ns.
type attack struct {
	Latencies *struct { // nil: not among those that this version of vegeta prints
		Mean *float64 `json:"mean"`
		P50  *float64 `json:"50th"`
		P90  *float64 `json:"90th"`
		P95  *float64 `json:"95th"`
		P99  *float64 `json:"99th"`
		Max  *float64 `json:"max"`
		Min  *float64 `json:"min"`
	} `json:"latencies"`
	In struct {
		Total float64 `json:"total"`
	} `json:"bytes_in"`
	Out struct {
		Total float64 `json:"total"`
	} `json:"bytes_out"`
	Earliest   time.Time          `json:"earliest"`
	Duration   float64            `json:"duration"`
	Wait       float64            `json:"wait"`
	Requests   float64            `json:"requests"`
	Rate       float64            `json:"rate"`       // requests sent, per second of the duration
	Throughput float64            `json:"throughput"` // successes, per second of duration and wait
	Success    *float64           `json:"success"`    // fraction; vegeta counts 3xx as success
	Statuses   map[string]float64 `json:"status_codes"`
	Errors     []string           `json:"errors"`
}

// readVault reads every test of a report: vault-benchmark's in its older or newer form, or vegeta's with one test. A
// report does not contain the number of workers, so whether the loop was open is unknown.
func readVault(name string, data []byte) ([]Record, error) {
	line := 0 // number of the first document's line
	records, err := readDocuments(name, data, wantedVault, func(d document) ([]Record, error) {
		line = cmp.Or(line, d.line)
		return vaultRecords(d)
	})
	if err == nil && len(records) == 0 {
		err = formatError(name, line, "no test in it has latencies; wanted %s", wantedVault)
	}
	return records, err
}

// whole is vault-benchmark's name for the total of all tests.
const whole = "total"

func vaultRecords(d document) ([]Record, error) {
	var parts map[string]json.RawMessage
	if err := d.decode(&parts, wantedVault); err != nil {
		return nil, err
	}
	prefix, tool, address := "", "vault-benchmark", ""
	if _, ok := parts["latencies"]; ok {
		parts, tool = map[string]json.RawMessage{"": json.RawMessage(d.text)}, "vegeta"
	} else if inner, ok := parts["metrics"]; ok {
		if json.Unmarshal(parts["target_addr"], &address) != nil {
			address = ""
		}
		parts, prefix = nil, "metrics."
		if err := json.Unmarshal(inner, &parts); err != nil {
			return nil, d.fail("metrics", "it is no JSON object of tests; wanted %s", wantedVault)
		}
	}
	var records []Record
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if !bytes.HasPrefix(parts[name], []byte{'{'}) {
			continue // not a test, such as a field of a log line
		}
		var a attack
		if err := json.Unmarshal(parts[name], &a); err != nil {
			return nil, d.partError(prefix+name, err)
		}
		if a.Latencies == nil {
			continue
		}
		r := a.record()
		r.Tool, r.Text, r.Place = tool, d.text, d.place(prefix+name)
		r.Path, r.Workload = "app", "vault/"+name
		if tool == "vegeta" {
			r.Path, r.Workload = "", "http"
		} else if _, has := parts[whole]; has && name != whole {
			r.Part = name
		}
		r.Facts = []result.Fact{{Name: "tool.version", Value: result.Unknown},
			{Name: "address", Value: orUnknown(address)}, {Name: "workers", Value: result.Unknown}}
		records = append(records, r)
	}
	for i := range records {
		records[i].Shares = len(records) > 1 && records[i].Workload != "vault/"+whole
	}
	return records, nil
}

// partError returns an error about a test that cannot be decoded.
func (d document) partError(path string, err error) error {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return d.fail(path, "it is no report of a test; wanted %s", wantedVault)
	}
	return d.fail(path, "%s; wanted %s", mistyped(typed, "it"), wantedVault)
}

func (a attack) record() Record {
	r := Record{Start: a.Earliest, Metric: metric.P50}
	if seconds := a.Duration / 1e9; usable(seconds) && seconds > 0 {
		r.Window = seconds
	}
	var v values
	v.add(metric.Rate, a.Throughput*a.succeeded())
	v.add(metric.Offered, a.Rate)
	if a.Requests > 0 {
		for _, l := range []struct {
			metric string
			ns     *float64
		}{
			{metric.Mean, a.Latencies.Mean}, {metric.P50, a.Latencies.P50}, {metric.P90, a.Latencies.P90},
			{metric.P95, a.Latencies.P95}, {metric.P99, a.Latencies.P99}, {metric.Max, a.Latencies.Max},
			{metric.Min, a.Latencies.Min},
		} {
			if l.ns != nil {
				v.add(l.metric, *l.ns/1e9)
			}
		}
	} else {
		r.Invalid = append(r.Invalid, result.Warning{Code: result.NothingDone, Text: "no request was made"})
	}
	v.add(metric.Operations, a.Requests)
	a.outcomes(&r, &v)
	if seconds := (a.Duration + a.Wait) / 1e9; usable(seconds) && seconds > 0 {
		v.add(metric.ThroughputIn, 8*a.In.Total/seconds)
		v.add(metric.ThroughputOut, 8*a.Out.Total/seconds)
	}
	r.Values = v
	return r
}

// succeeded returns the fraction with a 2xx response of what vegeta counts as success, which redirections are, too.
func (a attack) succeeded() float64 {
	classes, _ := a.classes()
	if both := classes[2] + classes[3]; both > 0 {
		return classes[2] / both
	}
	return 1
}

// classes returns how many requests had status codes of each class, such as 2xx, and of all. Class 0 had no answer.
func (a attack) classes() (classes [10]float64, sum float64) {
	for code, n := range a.Statuses {
		c, err := strconv.Atoi(code)
		if err != nil || c < 0 || c > 999 || !(n >= 0 && usable(n)) {
			continue
		}
		classes[c/100] += n
		sum += n
	}
	return classes, sum
}

// outcomes adds the fraction of failures and of each class of status codes. The tool's errors become warnings.
func (a attack) outcomes(r *Record, v *values) {
	classes, sum := a.classes()
	if sum == 0 {
		if a.Success != nil {
			v.add(metric.Failed, 1-*a.Success)
		}
		return
	}
	v.add(metric.Failed, (sum-classes[2])/sum)
	for class, n := range classes {
		if n > 0 {
			v.add(metric.Status(class), n/sum)
		}
	}
	for _, text := range a.Errors {
		r.Warnings = append(r.Warnings, result.Warning{Code: result.ToolReports, Text: "the tool reports: " + text})
	}
}
