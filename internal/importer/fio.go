package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/family/storage/fio"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const wantedFio = "the JSON that fio --output-format=json+ prints (or =json)"

// readFio reads a record per job; a mixed job's reads and writes are values of one record. Jobs of the same name and
// group are one measurement (numjobs without group_reporting).
func readFio(name string, data []byte) ([]Record, error) {
	return readDocuments(name, data, wantedFio, func(d document) (records []Record, err error) {
		runs, err := fioRuns(d)
		for i := 0; i < len(runs) && err == nil; i++ {
			var found []Record
			found, err = runs[i].records(d)
			records = append(records, found...)
		}
		return records, err
	})
}

// A fioRun is the output of one fio process, with facts about its volume.
type fioRun struct {
	fio.Output
	volume []result.Fact
}

// fioRuns returns the outputs of fio in a document: fio's own, or kubestr's list of tests with one in each.
func fioRuns(d document) ([]fioRun, error) {
	if d.text[0] != '[' {
		var run fioRun
		err := d.decode(&run.Output, wantedFio)
		return []fioRun{run}, err
	}
	var tests []struct {
		Raw struct {
			Size   string     `json:"size"`
			Class  className  `json:"storageClass"`
			Result fio.Output `json:"result"`
		} `json:"Raw"`
	}
	if err := d.decode(&tests, wantedFio); err != nil {
		return nil, err
	}
	var runs []fioRun
	for _, t := range tests {
		runs = append(runs, fioRun{t.Raw.Result, []result.Fact{
			{Name: "storage-class", Value: orUnknown(string(t.Raw.Class))}, {Name: "volume-size", Value: orUnknown(t.Raw.Size)},
		}})
	}
	if len(runs) == 0 {
		return nil, d.fail("the document", "the list is empty; wanted %s", wantedFio)
	}
	return runs, nil
}

// A className is the name of a storage class. In JSON it is a string, or the API server's object that kubestr writes.
type className string

// UnmarshalJSON reads a string, or the name in an object's metadata.
func (c *className) UnmarshalJSON(text []byte) error {
	var object struct {
		Metadata struct {
			Name className `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(text, (*string)(c)); err == nil {
		return nil
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	*c = object.Metadata.Name
	return nil
}

func (run *fioRun) records(d document) ([]Record, error) {
	switch {
	case len(run.Jobs) == 0 && len(run.Clients) > 0:
		return nil, d.fail("client_stats", "it is the output of a fio client, of several machines at once; "+
			"import each machine's own")
	case len(run.Jobs) == 0:
		return nil, d.fail("jobs", "there is none; wanted %s", wantedFio)
	}
	groups := run.Groups()
	names := run.names(groups)
	concurrent := map[int]int{} // measurements by group; a job with stonewall begins a new group after the others
	for _, g := range groups {
		concurrent[g.Jobs[0].Group]++
	}
	var records []Record
	for i, group := range groups {
		job := group.Jobs[0]
		r := Record{Measurement: group.Measure(), Path: "storage", Workload: names[i], Metric: run.metric(job),
			Tool: "fio", Text: d.text, Environment: run.volume, Place: d.place(fmt.Sprintf("jobs[%d]", group.First)),
			Start: run.start(job)}
		if own := ownName(job); own != names[i] {
			r.Synonym = own
		}
		if _, ok := (result.Run{Values: r.Values}).Value(metric.Sync + metric.P99); ok {
			r.Metric = metric.Sync + metric.P99 // databases wait for syncs
		}
		r.Facts = append(group.Facts(), run.auditFacts(job, concurrent[job.Group])...)
		r.Warnings = append(r.Warnings, run.interruption(d, job, r.Window)...)
		if job.Error != 0 {
			text := fmt.Sprintf("fio says that the job failed with error %d", job.Error)
			r.Invalid = append(r.Invalid, result.Warning{Code: result.JobFailed, Text: text})
		}
		records = append(records, r)
	}
	return records, nil
}

// signalNote matches what fio prints before its JSON when a signal ends it.
var signalNote = regexp.MustCompile(`(?m)^\s*fio: terminating on signal (\d+)`)

// interruption returns a warning if the job ended before its time: a signal ended fio, or its options ask for more
// seconds than it ran.
func (run *fioRun) interruption(d document, job fio.Job, seconds float64) []result.Warning {
	const whole = 0.95 // of the time that was asked for
	asked := fioSeconds(run.Option(job, "runtime", "timeout"))
	timed := run.isOn(job, "time_based")
	early := asked > 0 && seconds > 0 && seconds < whole*asked
	signal := signalNote.FindStringSubmatch(d.before)
	text := ""
	switch {
	case signal != nil && early:
		text = fmt.Sprintf("fio was terminated on signal %s after %.3g s of %.4g s", signal[1], seconds, asked)
	case signal != nil && asked == 0:
		text = fmt.Sprintf("fio was terminated on signal %s after %.3g s", signal[1], seconds)
	case timed && early:
		text = fmt.Sprintf("the job ended after %.3g s of %.4g s", seconds, asked)
	default:
		return nil
	}
	return []result.Warning{{Code: result.StoppedEarly, Text: text}}
}

// fioSeconds parses a time such as fio's 300, 5m or 500ms; 0 if it is none.
func fioSeconds(text string) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && usable(n) {
		return n
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0
	}
	return d.Seconds()
}

// Facts that the audit judges a job by, in addition to those of its options.
const (
	factJobsAtOnce = "fio.jobs-at-once" // number of measurements that ran at the same time, if above 1
	factTouched    = "fio.touched"      // "device" if the job accessed a device rather than a file
)

func (run *fioRun) auditFacts(job fio.Job, concurrent int) []result.Fact {
	var facts []result.Fact
	if concurrent > 1 {
		facts = append(facts, result.Fact{Name: factJobsAtOnce, Value: strconv.Itoa(concurrent)})
	}
	if name := run.Option(job, "filename"); strings.HasPrefix(name, "/dev/") {
		facts = append(facts, result.Fact{Name: factTouched, Value: "device"})
	}
	return facts
}

// start returns when the job began, else when fio printed its output; the zero time if neither is known.
func (run *fioRun) start(job fio.Job) time.Time {
	const latest = 253402300800 // the year 10000
	switch {
	case job.Start > 0 && job.Start < latest*1e3:
		return time.UnixMilli(int64(job.Start)).UTC()
	case run.Time > 0 && run.Time < latest:
		return time.Unix(int64(run.Time), 0).UTC()
	}
	return time.Time{}
}

// names returns a name for each group: the case with its options, such as randread-4k-qd1, or the job's own name if the
// options are unknown or several groups have the same.
func (run *fioRun) names(groups []fio.Group) []string {
	var names []string
	count := map[string]int{}
	for _, group := range groups {
		name := run.describe(group.Jobs[0])
		count[name]++
		names = append(names, name)
	}
	for i, group := range groups {
		if names[i] == "" || count[names[i]] > 1 {
			names[i] = ownName(group.Jobs[0])
		}
	}
	return names
}

// ownName returns the job's name as a case of a user's job file; empty if the job has no name.
func ownName(job fio.Job) string {
	if strings.TrimSpace(job.Name) == "" {
		return ""
	}
	return storage.Job{Name: strings.TrimSpace(job.Name)}.Title()
}

// describe returns the name of the case with the job's options; empty if the operation or block size is unknown.
func (run *fioRun) describe(job fio.Job) string {
	o := run.options(job)
	if o.ReadWrite == "" || o.Block == 0 {
		return ""
	}
	name := o.Title() // 1024k becomes 1m
	if run.isOn(job, "fsync") && !o.Fdatasync {
		name += "-fsync"
	}
	return name
}

// options returns the storage job that the options describe, with fio's defaults for those that are missing.
func (run *fioRun) options(job fio.Job) storage.Job {
	number := func(text string, fallback int) int {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 1e6 {
			return fallback
		}
		return n
	}
	rw, _, _ := strings.Cut(run.Option(job, "rw", "readwrite"), ":")
	if rw == "readwrite" {
		rw = "rw"
	}
	o := storage.Job{ReadWrite: rw, Block: blockSize(run.Option(job, "bs", "blocksize")),
		Depth: number(run.Option(job, "iodepth"), 1), Jobs: number(run.Option(job, "numjobs"), 1),
		Fdatasync: run.isOn(job, "fdatasync")}
	if o.Mixed() {
		o.Mix = number(run.Option(job, "rwmixread"), 50)
	}
	return o
}

// isOn reports whether a switch is set, with a value other than 0 or without one.
func (run *fioRun) isOn(job fio.Job, name string) bool {
	for _, options := range []map[string]string{job.Options, run.Global} {
		if v, is := options[name]; is {
			return v != "0"
		}
	}
	return false
}

// blockSize parses a size such as fio's 4k in bytes; 0 if it is missing, or more than one size.
func blockSize(text string) int {
	text = strings.TrimSuffix(strings.ToLower(text), "b")
	if n, err := unit.ParseSize(strings.ToUpper(text) + "iB"); err == nil {
		return n
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0
	}
	return n
}

// metric returns the metric for verdicts on the job: latency at depth 1, bandwidth of large blocks, else operations.
func (run *fioRun) metric(job fio.Job) string {
	o := run.options(job)
	if o.Block == 0 || o.Fdatasync {
		o.Fdatasync = false
		o.Depth = cmp.Or(o.Depth, 1) + 1 // not 1, so that the metric is no latency
	}
	return o.Metric()
}
