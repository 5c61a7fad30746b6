package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/family/storage/fio"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

const wantedFio = "the JSON that fio --output-format=json or json+ prints"

// readFio reads every job; what a mixed one reads and what it writes are values of one record. Jobs of one name and
// group are parts of one measurement (numjobs without group_reporting).
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

// A fioRun is a document of fio's, and what else is known of its volume.
type fioRun struct {
	fio.Output
	volume []result.Fact
}

// fioRuns takes a document apart: fio's own, or kubestr's list of tests with fio's in each.
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

// A className is that of a storage class, given as its name or as the object that kubestr has from the API server.
type className string

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
	atOnce := map[int]int{} // measurements by group; a job that waits for those before it (stonewall) begins a new one
	for _, g := range groups {
		atOnce[g.Jobs[0].Group]++
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
			r.Metric = metric.Sync + metric.P99 // what a database waits for
		}
		r.Facts = append(group.Facts(), run.doubtful(job, atOnce[job.Group])...)
		if job.Error != 0 {
			text := fmt.Sprintf("fio says that the job failed with error %d", job.Error)
			r.Invalid = append(r.Invalid, result.Warning{Code: result.JobFailed, Text: text})
		}
		records = append(records, r)
	}
	return records, nil
}

// The facts of a job by which the audit judges it, beside those of its options.
const (
	factJobsAtOnce = "fio.jobs-at-once" // how many jobs ran at the same time
	factTouched    = "fio.touched"      // what it read or wrote: a file or a device
)

func (run *fioRun) doubtful(job fio.Job, atOnce int) []result.Fact {
	var facts []result.Fact
	if atOnce > 1 {
		facts = append(facts, result.Fact{Name: factJobsAtOnce, Value: strconv.Itoa(atOnce)})
	}
	if name := run.Option(job, "filename"); strings.HasPrefix(name, "/dev/") {
		facts = append(facts, result.Fact{Name: factTouched, Value: "device"})
	}
	return facts
}

// start is when the job began, or for want of that when fio printed its output.
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

// names gives each group the name that its options have as a case of ours, randread-4k-qd1, or that of its job, where
// the options are not known or two jobs have the same.
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

// ownName is the name that the job has as a case of a user's own job file; empty of a job without a name.
func ownName(job fio.Job) string {
	if strings.TrimSpace(job.Name) == "" {
		return ""
	}
	return storage.Job{Name: strings.TrimSpace(job.Name)}.Title()
}

func (run *fioRun) describe(job fio.Job) string {
	o := run.io(job)
	if o.ReadWrite == "" || o.Block == 0 {
		return ""
	}
	// As a case of ours is named where it could be one: 1024k is 1m there.
	name := o.Title()
	if run.on(job, "fsync") && !o.Fdatasync {
		name += "-fsync"
	}
	return name
}

// io is what a job does as far as its options say.
func (run *fioRun) io(job fio.Job) storage.Job {
	number := func(text string, otherwise int) int {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 1e6 {
			return otherwise
		}
		return n
	}
	rw, _, _ := strings.Cut(run.Option(job, "rw", "readwrite"), ":")
	if rw == "readwrite" {
		rw = "rw"
	}
	o := storage.Job{ReadWrite: rw, Block: blockSize(run.Option(job, "bs", "blocksize")),
		Depth: number(run.Option(job, "iodepth"), 1), Jobs: number(run.Option(job, "numjobs"), 1),
		Fdatasync: run.on(job, "fdatasync")}
	if o.Mixed() {
		o.Mix = number(run.Option(job, "rwmixread"), 50)
	}
	return o
}

// on says whether an option has a number above 0.
func (run *fioRun) on(job fio.Job, name string) bool {
	v := run.Option(job, name)
	return v != "" && v != "0"
}

// blockSize reads fio's 4k; 0 is none, or more than one.
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

// metric is what the job is for: latency at depth 1, bandwidth with large blocks, else operations.
func (run *fioRun) metric(job fio.Job) string {
	o := run.io(job)
	if o.Block == 0 || o.Fdatasync {
		o.Fdatasync = false
		o.Depth = cmp.Or(o.Depth, 1) + 1 // of sizes that are not known, the rate
	}
	return o.Metric()
}
