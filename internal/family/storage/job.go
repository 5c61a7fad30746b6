package storage

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// Limits of a Job.
const (
	maxDepth = 1024
	maxJobs  = 64
	maxBlock = 16 << 20
	maxFiles = 1 << 40 // bytes of the files of all processes

	maxBuffers = 4 << 30 // bytes of the buffers of all operations in flight
)

// checkBuffers returns an error if the buffers of a job take too much memory: each operation in flight has one.
func checkBuffers(jobs, depth, block int64) error {
	if jobs*depth*block > maxBuffers {
		return fmt.Errorf("%d jobs with %d operations in flight of %d bytes take %.3g GiB of memory, and at most %d are "+
			"allowed: lower one of them", jobs, depth, block, float64(jobs*depth*block)/(1<<30), maxBuffers>>30)
	}
	return nil
}

// A Job is a job of fio, with fio's names. It is comparable with ==.
type Job struct {
	ReadWrite string `json:"rw,omitempty"`        // fio's rw: read, write, randread, randwrite, rw or randrw
	Mix       int    `json:"mix,omitempty"`       // fio's rwmixread of a mixed job, in per cent
	Block     int    `json:"bs,omitempty"`        // bytes of one operation
	Depth     int    `json:"iodepth,omitempty"`   // operations in flight
	Jobs      int    `json:"numjobs,omitempty"`   // concurrent processes
	Fdatasync bool   `json:"fdatasync,omitempty"` // after each write, as a database does; the engine is sync then
	// Precondition runs the job before its window until its rate is steady, like SNIA's tests of solid state storage.
	Precondition bool `json:"precondition,omitempty"`
	// Sync selects ioengine=sync, which waits for each operation, instead of libaio.
	Sync bool `json:"sync,omitempty"`
	// FilePerJob is the size in bytes of a file for each process, at least 1 MiB; 0 is one file for all of them, whose
	// size depends on the volume's bandwidth.
	FilePerJob int64 `json:"file_per_job,omitempty"`
	// Untimed sets gtod_reduce=1: fio measures no latencies, and reads the clock less often.
	Untimed bool `json:"gtod_reduce,omitempty"`
	// Name and Text are set for a user-defined job: Text holds its section and the [global] section before it, as in
	// the file. The other fields are empty then.
	Name string `json:"name,omitempty"`
	Text string `json:"text,omitempty"`
}

// Writes reports whether the job writes; false for a user-defined job, whose operations are unknown.
func (j Job) Writes() bool { return strings.Contains(j.ReadWrite, "write") || j.Mixed() }

// Mixed reports whether the job both reads and writes.
func (j Job) Mixed() bool { return j.ReadWrite == "rw" || j.ReadWrite == "randrw" }

// singleReads reports whether the job reads at random offsets and waits for each read.
func (j Job) singleReads() bool { return j.ReadWrite == "randread" && j.Depth == 1 && j.Jobs == 1 }

// Metric returns the metric that a verdict on the job is about: the time of fdatasync if there is one, bandwidth for
// large blocks, latency for one small operation at a time, and their rate for many.
func (j Job) Metric() string {
	const large = 64 << 10
	switch {
	case j.Fdatasync:
		return metric.Sync + metric.P99
	case j.Name != "" || j.Block >= large:
		return metric.Throughput
	case j.Depth == 1 && j.Jobs == 1 && !j.Mixed() && !j.Untimed:
		return metric.P50
	}
	return metric.Rate
}

// accesses maps fio's rw to plain words.
var accesses = map[string]string{
	"read": "Sequential read", "write": "Sequential write", "randread": "Random read", "randwrite": "Random write",
	"rw": "Sequential read and write", "randrw": "Random read and write",
}

// subject returns the job in plain words: "Random read, 4 KiB, queue depth 64".
func (j Job) subject() string {
	if j.Name != "" {
		return "Job " + j.Name
	}
	words := accesses[j.ReadWrite]
	if j.Mixed() {
		words += fmt.Sprintf(" %d:%d", j.Mix, 100-j.Mix)
	}
	words += ", " + inUnits(j.Block, " MiB", " KiB", " B")
	switch {
	case j.Fdatasync:
		words += " and fdatasync"
	case j.Depth > 1:
		words += ", queue depth " + strconv.Itoa(j.Depth)
	}
	if j.Jobs > 1 {
		words += ", " + strconv.Itoa(j.Jobs) + " jobs"
	}
	if j.Sync {
		words += ", synchronous"
	}
	if j.FilePerJob > 0 {
		words += ", a file of " + inWhole(j.FilePerJob, " GiB", " MiB") + " each"
	}
	if j.Untimed {
		words += ", without latencies"
	}
	if j.Precondition {
		words += ", preconditioned"
	}
	return words
}

// inUnits formats a number of bytes in the largest of these units of which it is a multiple.
func inUnits(n int, mebi, kibi, bytes string) string {
	switch {
	case n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + mebi
	case n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + kibi
	}
	return strconv.Itoa(n) + bytes
}

// inWhole formats a size of whole MiB, in GiB if it is a multiple of that.
func inWhole(n int64, gibi, mebi string) string {
	if n%(1<<30) == 0 {
		return strconv.FormatInt(n>>30, 10) + gibi
	}
	return strconv.FormatInt(n>>20, 10) + mebi
}

// quantity returns what Metric measures, in plain words.
func (j Job) quantity() string {
	switch j.Metric() {
	case metric.Throughput:
		return "throughput"
	case metric.Rate:
		return "operations"
	case metric.P50:
		return "latency"
	}
	return "fdatasync p99"
}

// jobName matches names such as randread-4k-qd64, randrw70-4k-qd16-jobs4 and write-2300-qd1-fdatasync.
var jobName = regexp.MustCompile(
	`^(read|write|randread|randwrite|(?:rand)?rw)(\d{0,3})-(\d+[km]?)-qd(\d+)(?:-jobs(\d+))?(-fdatasync)?$`)

// ownName matches the name of a user-defined job, which follows jobPrefix.
var ownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

const jobPrefix = "job/"

// readWrites are the values of rw.
var readWrites = []string{"read", "write", "randread", "randwrite", "rw", "randrw"}

// parameters are those of all jobs that are not user-defined, in the order of canonical names.
var parameters = parameter.Schema[Job]{
	parameter.New(parameter.Parameter[Job]{
		Name: "ioengine", Default: "libaio",
		Help: "with `sync` each process waits for each operation, so the queue depth is 1; a job file can have others",
	}, func(j *Job) *bool { return &j.Sync }, parameter.Switch("libaio", "sync")),
	parameter.New(parameter.Parameter[Job]{
		Name: "file-per-job",
		Help: "size of a file for each process (default: one file for all by [the rule](#how-a-run-goes)); not on devices",
	}, func(j *Job) *int64 { return &j.FilePerJob }, parameter.Values[int64]{
		Valid: "whole MiB, such as 1g; all files together at most 1 TiB", Parse: parseSize,
		Format: func(size int64) string { return inWhole(size, "g", "m") },
		Is:     func(size int64) bool { return size >= 1<<20 && size%(1<<20) == 0 && size <= maxFiles },
	}),
	parameter.New(parameter.Parameter[Job]{
		Name: "gtod-reduce", Default: "no",
		Help: "fio measures no latencies and reads the clock less often; verdicts are about `rate` or `throughput`",
	}, func(j *Job) *bool { return &j.Untimed }, parameter.Switch("no", "yes")),
	parameter.New(parameter.Parameter[Job]{
		Name: "precondition", Default: "no",
		Help: "of jobs that write: runs the job until its rate is [steady](#steady-state) before it counts",
	}, func(j *Job) *bool { return &j.Precondition }, parameter.Switch("no", "yes")),
}

// Parse reads a job as Title writes it. text is the definition of a user-defined job, and empty otherwise.
func Parse(name, text string) (Job, error) {
	if own, is := strings.CutPrefix(name, jobPrefix); is {
		j := Job{Name: own, Text: text}
		return j, j.validateOwn()
	}
	base, _, _ := strings.Cut(name, ":")
	m := jobName.FindStringSubmatch(base)
	if m == nil {
		return Job{}, fmt.Errorf("%q is no job of storage, such as randread-4k-qd64, randrw70-4k-qd16-jobs4, "+
			"write-2300-qd1-fdatasync or randwrite-4k-qd1-jobs4:ioengine=sync", name)
	}
	block, err := unit.ParseSize(strings.ToUpper(m[3]))
	if strings.HasSuffix(m[3], "k") || strings.HasSuffix(m[3], "m") {
		block, err = unit.ParseSize(strings.ToUpper(m[3]) + "iB") // fio's k and m are powers of two
	}
	if err != nil {
		return Job{}, fmt.Errorf("%q: %w", name, err)
	}
	// The texts are digits only, and numbers too large for an int are out of range too.
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	j := Job{ReadWrite: m[1], Block: block, Depth: number(m[4]), Jobs: max(number(m[5]), 1), Fdatasync: m[6] != ""}
	if j.Depth == 0 || m[5] == "0" {
		return Job{}, fmt.Errorf("%q: a queue depth and a number of jobs are at least 1", name)
	}
	if m[2] != "" || j.Mixed() {
		if j.Mix = number(m[2]); m[2] == "" {
			j.Mix = 50 // fio's default
		}
		if !j.Mixed() {
			return Job{}, fmt.Errorf("%q: only rw and randrw have a share of reads", name)
		}
	}
	if err := parameters.Parse(&j, name); err != nil {
		return Job{}, err
	}
	return j.Resolved()
}

// Title returns the job's part of its case's name.
func (j Job) Title() string {
	if j.Name != "" {
		return jobPrefix + j.Name
	}
	name := j.ReadWrite
	if j.Mixed() {
		name += strconv.Itoa(j.Mix)
	}
	name += "-" + blockText(j.Block) + "-qd" + strconv.Itoa(j.Depth)
	if j.Jobs > 1 {
		name += "-jobs" + strconv.Itoa(j.Jobs)
	}
	if j.Fdatasync {
		name += "-fdatasync"
	}
	return parameters.Text(name, j)
}

// blockText formats a size as fio does: 1 MiB is 1m, even if a published job has 1024k.
func blockText(n int) string { return inUnits(n, "m", "k", "") }

// Resolved returns the job with fio's defaults, or an error that names the value that is out of range.
func (j Job) Resolved() (Job, error) {
	if j.Name == "" {
		j.Depth, j.Jobs = cmp.Or(j.Depth, 1), cmp.Or(j.Jobs, 1)
	}
	return j, j.validate()
}

func (j Job) validate() error {
	switch {
	case j.Name != "":
		return j.validateOwn()
	case !slices.Contains(readWrites, j.ReadWrite):
		return fmt.Errorf("rw=%s is not one of read, write, randread, randwrite, rw and randrw", j.ReadWrite)
	case j.Block < 512 || j.Block > maxBlock:
		return fmt.Errorf("a block of %d bytes is not from 512 to %d", j.Block, maxBlock)
	case j.Depth < 1 || j.Depth > maxDepth:
		return fmt.Errorf("a queue depth of %d is not from 1 to %d", j.Depth, maxDepth)
	case j.Jobs < 1 || j.Jobs > maxJobs:
		return fmt.Errorf("%d jobs are not from 1 to %d", j.Jobs, maxJobs)
	case j.Mix < 0 || j.Mix > 100:
		return fmt.Errorf("a share of reads of %d %% is not from 0 to 100", j.Mix)
	case j.Precondition && !j.Writes():
		return errors.New("precondition is for jobs that write; what is read has been written before")
	case j.Sync && j.Depth != 1:
		return fmt.Errorf("ioengine=sync waits for each operation, so its queue depth is 1 and not %d", j.Depth)
	case j.Untimed && j.Fdatasync:
		return errors.New("gtod-reduce leaves out the latencies of fdatasync, which its verdict is about")
	case j.FilePerJob > maxFiles/int64(j.Jobs):
		return fmt.Errorf("file-per-job is 1 TiB at most of all jobs: not %d bytes for each of %d", j.FilePerJob, j.Jobs)
	case j.Fdatasync && (j.Sync || j.FilePerJob != 0):
		return errors.New("with fdatasync, engine and file are those of etcd's check")
	case j.Fdatasync && (!j.Writes() || j.Depth != 1):
		return errors.New("fdatasync is for writes, one at a time")
	}
	return cmp.Or(checkBuffers(int64(j.Jobs), int64(j.Depth), int64(j.Block)), parameters.Check(j))
}

// validateOwn checks the name of a user-defined job and that it has a text, which the tool checks.
func (j Job) validateOwn() error {
	if !ownName.MatchString(j.Name) {
		return fmt.Errorf("a job's name is letters, digits, dots, dashes and underscores, not %q", j.Name)
	}
	if j.Text == "" {
		return fmt.Errorf("nothing says what the job %s does; its file is named by the suite, as in --suite storage:FILE",
			j.Name)
	}
	return nil
}
