package fio

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// sector is the unit of direct I/O in bytes.
const sector = 512

// seriesFrom is the shortest window for which a run has a series, with steps of one second.
const seriesFrom = 3 * time.Second

// A job holds what a workload determines about its file and its section of the job file.
type job struct {
	name      string
	options   []string // of the workload itself
	engine    string
	direct    bool
	size      int64  // of a file, if the workload sets it; 0: by the rule
	files     int    // one for each thread; 0: one for all of them
	untimed   bool   // without latencies
	metric    string // of the verdict
	why       string // why the file has its size
	depth     int    // operations in flight per thread; 1 if each waits for the previous one
	threads   int
	throttled bool // waits between operations or limits its rate: depth and CPU are not checked
	syncs     bool
	// precondition runs the job until its rate is steady; writes is not set for a user-defined job.
	precondition, writes bool
}

// newJob converts a job of storage. Every error wraps result.ErrNotSupported.
func newJob(w family.Workload) (job, error) {
	o, is := w.(storage.Job)
	switch {
	case !is:
		return job{}, result.NotSupported(fmt.Sprintf("fio has no %s: it measures storage", w))
	case o.Name != "":
		return ownJob(o)
	}
	j := job{metric: o.Metric(), engine: "libaio", direct: true, depth: o.Depth, threads: o.Jobs,
		precondition: o.Precondition, writes: o.Writes(), untimed: o.Untimed}
	j.name, _, _ = strings.Cut(o.Title(), ":")
	if o.Fdatasync {
		// Like the check for etcd: through the page cache, with a sync after every write.
		j.engine, j.direct, j.syncs = "sync", false, true
		j.size, j.why = etcdSize, "22 MiB, as the published check for etcd has it"
	} else if o.Block%sector != 0 {
		return job{}, result.NotSupported(fmt.Sprintf("direct I/O is in multiples of %d bytes, which bs=%d is not; only "+
			"with fdatasync does a job write through the page cache", sector, o.Block))
	}
	if o.Sync {
		j.engine = "sync"
	}
	if o.FilePerJob > 0 {
		j.size, j.files, j.why = o.FilePerJob, o.Jobs, "as file-per-job says, of each job"
	}
	j.options = []string{"rw=" + o.ReadWrite, "bs=" + strconv.Itoa(o.Block),
		"iodepth=" + strconv.Itoa(o.Depth), "numjobs=" + strconv.Itoa(o.Jobs)}
	if o.Mixed() {
		j.options = append(j.options, "rwmixread="+strconv.Itoa(o.Mix))
	}
	if o.Fdatasync {
		j.options = append(j.options, "fdatasync=1")
	}
	// New data in every write, so that no layer above the disk can deduplicate or skip them.
	j.options = append(j.options, "ioengine="+j.engine, "direct="+flag(j.direct), "refill_buffers")
	return j, nil
}

// etcdSize is the file size of the check that etcd's documentation refers to, in bytes.
const etcdSize = 22 << 20

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// ownJob converts a user-defined job. Its text is checked as strictly as when the suite was made.
func ownJob(o storage.Job) (job, error) {
	jobs, err := storage.ParseFile("job "+o.Name, []byte(o.Text))
	if err != nil {
		return job{}, result.NotSupported(err.Error())
	}
	if len(jobs) != 1 || jobs[0].Name != o.Name {
		return job{}, result.NotSupported(fmt.Sprintf("the definition of job %s is not that of one job of this name", o.Name))
	}
	own := jobs[0]
	engine, is := own.Get("ioengine")
	if !is {
		engine = "psync" // fio's default on Linux
	}
	j := job{name: own.Name, metric: o.Metric(), engine: engine, direct: own.Flag("direct"),
		depth: own.Number("iodepth", 1), threads: max(own.Number("numjobs", 1), 1)}
	if engine != "libaio" && engine != "io_uring" && engine != "posixaio" {
		j.depth = 1 // other engines wait for each operation, whatever iodepth is
	}
	j.syncs = own.Number("fdatasync", 0) > 0 || own.Number("fsync", 0) > 0
	for _, key := range []string{"rate", "rate_iops", "thinktime", "latency_target", "iodepth_low", "iodepth_batch",
		"iodepth_batch_submit"} {
		_, is := own.Get(key)
		j.throttled = j.throttled || is
	}
	if j.size, is, err = own.Size(); is && err == nil {
		j.why = "as the job file says"
	}
	for _, list := range [][]storage.Option{own.Global, own.Own} {
		for _, option := range list {
			if !overridden(option.Key) {
				j.options = append(j.options, option.String())
			}
		}
	}
	return j, nil
}

// overridden reports whether the design of the experiment determines an option of a job file.
func overridden(key string) bool {
	switch key {
	case "runtime", "timeout", "ramp_time", "time_based", "size",
		"group_reporting", "thread", "stonewall", "wait_for_previous", "new_group",
		"exitall", "start_delay", "startdelay", "randrepeat", "allrandrepeat", "randseed", "lat_percentiles",
		"clat_percentiles", "percentile_list":
		return true
	}
	return false
}

// A workFile names the file on a volume that a job uses, or one file for each of several processes.
type workFile struct {
	directory, file string
	jobs            int // 0: one file for all of them
}

// plainPath matches paths that a job file can name.
var plainPath = regexp.MustCompile(`^/[A-Za-z0-9 ._/@+,=:-]*$`)

// workFileOf returns the device, or a file whose name contains what determines its size.
func workFileOf(v host.Volume, size string) (workFile, error) {
	if !plainPath.MatchString(v.Path) ||
		path.Clean(v.Path) != v.Path || strings.HasSuffix(v.Path, " ") {
		return workFile{}, fmt.Errorf("the volume %q is no absolute path of letters, digits and ._/@+,=:- that a job file "+
			"can name", v.Path)
	}
	escaped := strings.ReplaceAll(v.Path, ":", `\:`)
	if v.Device {
		return workFile{file: escaped}, nil
	}
	return workFile{directory: escaped, file: "knotmeter-" + size + ".fio"}, nil
}

// workFile returns the file of the job on a volume.
func (j job) workFile(v host.Volume) (workFile, error) {
	p, err := workFileOf(v, j.sizeClass())
	if err != nil || j.files == 0 {
		return p, err
	}
	if v.Device {
		return p, result.NotSupported(v.Path + " is a device, and file-per-job takes a file system: leave it out, or ask " +
			"for volume-mode=filesystem")
	}
	p.file, p.jobs = strings.TrimSuffix(p.file, ".fio")+".$jobnum.fio", j.files
	return p, nil
}

func (f workFile) options() []string {
	switch {
	case f.directory == "":
		return []string{"filename=" + f.file}
	case f.jobs > 0:
		return []string{"directory=" + f.directory, "filename_format=" + f.file}
	}
	return []string{"directory=" + f.directory, "filename=" + f.file}
}

// measuring returns the job file of a run: warm-up and window on an existing file.
func (j job) measuring(p workFile, t family.Times, size int64, seed uint64, cpus []int) string {
	options := append(p.options(), "size="+strconv.FormatInt(size, 10), "allow_file_create=0",
		"time_based", "runtime="+milliseconds(t.Window), "ramp_time="+milliseconds(t.Warmup),
		// fio's processes leave their process group and could outlive it; its threads end with it.
		"thread", "group_reporting", timing(j.untimed),
		// Different offsets in each run, reproducible with this job file.
		"randrepeat=0", "randseed="+strconv.FormatUint(seed, 10))
	own := j.options
	if len(cpus) > 0 && !strings.Contains(strings.Join(own, "\n"), "cpus_allowed=") {
		options = append(options, "cpus_allowed="+list(cpus))
	}
	return section(j.name, append(own[:len(own):len(own)], options...))
}

// timing returns the option that makes fio measure whole operations, or no latency at all.
func timing(untimed bool) string {
	if untimed {
		return "gtod_reduce=1"
	}
	return "lat_percentiles=1"
}

// A rate is steady if a straight line fitted to its seconds changes by at most steadySlope of their mean from the first
// to the last. The number of seconds is that of the window, but at least five, like SNIA's five rounds, and at most 60.
const (
	steadySlope = 0.10
	steadyLeast = 5 * time.Second
	steadyMost  = time.Minute
)

// preconditioning returns the job file that runs the job until its rate is steady.
func (j job) preconditioning(p workFile, window time.Duration, size int64, seed uint64, cpus []int) string {
	seconds := math.Ceil(min(max(window, steadyLeast), steadyMost).Seconds())
	return j.measuring(p, family.Times{Window: storage.PreconditionTime}, size, seed, cpus) +
		fmt.Sprintf("steadystate=iops_slope:%.3g%%\nsteadystate_duration=%gs\n", // fio's slope is per second
			100*steadySlope/seconds, seconds)
}

// filling returns the job file that writes the file from an offset to its size, for at most the duration most.
func filling(name string, p workFile, direct bool, from, size int64, most time.Duration) string {
	options := append(p.options(), "rw=write", "bs=1m", "size="+strconv.FormatInt(size-from, 10),
		"runtime="+milliseconds(most), "thread", "group_reporting", "refill_buffers", "fallocate=none", "end_fsync=1")
	switch {
	case from > 0 && p.directory == "":
		options = append(options, "offset="+strconv.FormatInt(from, 10))
	case from == 0 && p.jobs > 0:
		options = append(options, "numjobs="+strconv.Itoa(p.jobs))
	case from > 0: // otherwise fio would write the file anew
		options = append(options, "file_append=1")
	}
	if direct {
		options = append(options, "ioengine=libaio", "iodepth=16", "direct=1")
	} else {
		options = append(options, "ioengine=psync", "direct=0")
	}
	return section(name, options)
}

func section(name string, options []string) string {
	return "[" + name + "]\n" + strings.Join(options, "\n") + "\n"
}

// arguments returns fio's command line; the job file comes on standard input.
func arguments(window time.Duration) []string {
	args := []string{"fio", "--output-format=json+"}
	if window >= seriesFrom {
		args = append(args, "--status-interval=1")
	}
	return append(args, "-")
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt((d+time.Millisecond-1).Milliseconds(), 10) + "ms"
}

func list(cpus []int) string {
	texts := make([]string, len(cpus))
	for i, c := range cpus {
		texts[i] = strconv.Itoa(c)
	}
	return strings.Join(texts, ",")
}
