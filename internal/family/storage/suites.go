package storage

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Windows of runs. The variation between blocks hardly depends on them. In the short one, even a volume with 8 ms per
// write has enough writes for a p99.
const (
	standard = 10 * time.Second
	short    = 3 * time.Second
)

// suites returns all suites except those made from files.
func suites() []family.Suite {
	return []family.Suite{
		// Latency, operations, bandwidth and fdatasync are primary; the mix and single writes are exploratory.
		newSuite("storage", "latency, operations, bandwidth and fdatasync of a volume, by fio", standard, jobs(result.Primary,
			"randread-4k-qd1", "randread-4k-qd64", "randwrite-4k-qd64",
			"read-1m-qd16", "write-1m-qd16", "write-2300-qd1-fdatasync"),
			jobs(result.Exploratory, "randwrite-4k-qd1", "randrw70-4k-qd16-jobs4")),
		newSuite("storage:quick", "one case each of latency, operations, bandwidth and fdatasync, in short runs",
			short, jobs(result.Primary, "randread-4k-qd1", "randwrite-4k-qd64", "read-1m-qd16", "write-2300-qd1-fdatasync")),
		// Six of the twelve jobs of K-Bench's dp_fio use the volume; the four published figures come from those with
		// libaio. Unlike K-Bench, this suite measures latencies, and the four threads of a job share one file.
		newSuite("storage:kbench", "K-Bench's jobs: the asynchronous ones of the Constellation v2.0 report, and the "+
			"synchronous ones", standard,
			jobs(result.Primary, "randrw70-4k-qd16-jobs4", "randrw100-4k-qd16-jobs4", "randrw0-4k-qd16-jobs4"),
			jobs(result.Exploratory, "randrw70-4k-qd1-jobs4:ioengine=sync", "randrw100-4k-qd1-jobs4:ioengine=sync",
				"randrw0-4k-qd1-jobs4:ioengine=sync")),
		// The same as in K-Bench, except for the duration, which the design sets, and the queue depth of the
		// synchronous engine: it is always 1, though K-Bench sets 16.
		newSuite("storage:kbench-published", "K-Bench's jobs without latencies, each thread with a file of 1 GiB", standard,
			jobs(result.Primary, asPublished("randrw70-4k-qd16-jobs4:"), asPublished("randrw100-4k-qd16-jobs4:"),
				asPublished("randrw0-4k-qd16-jobs4:")),
			jobs(result.Exploratory, asPublished("randrw70-4k-qd1-jobs4:ioengine=sync,"),
				asPublished("randrw100-4k-qd1-jobs4:ioengine=sync,"), asPublished("randrw0-4k-qd1-jobs4:ioengine=sync,"))),
		// Each job has one thread, as published, but is not pinned to CPU 1 (cpus_allowed=1), and runs for the design's
		// duration instead of once for 60 s.
		newSuite("storage:constellation", "the IOPS and bandwidth jobs of the Constellation v2.6 report",
			standard, jobs(result.Primary,
				"randread-4k-qd128", "randwrite-4k-qd128", "randread-1m-qd128", "randwrite-1m-qd128")),
		// The same with the file size of the report.
		newSuite("storage:constellation-published", "the same jobs on a file of 10 GiB, as the v2.6 report says", standard,
			jobs(result.Primary, "randread-4k-qd128:file-per-job=10g", "randwrite-4k-qd128:file-per-job=10g",
				"randread-1m-qd128:file-per-job=10g", "randwrite-1m-qd128:file-per-job=10g")),
		newSuite("storage:etcd", "write and fdatasync as etcd does it; its documentation wants a p99 below 10 ms",
			standard, jobs(result.Primary, "write-2300-qd1-fdatasync")),
	}
}

// asPublished returns a job with K-Bench's files and without latencies.
func asPublished(job string) string { return job + "file-per-job=1g,gtod-reduce=yes" }

func newSuite(name, about string, window time.Duration, cases ...[]family.Case) family.Suite {
	s := family.Suite{Name: name, About: about, Duration: window}
	for _, list := range cases {
		s.Cases = append(s.Cases, list...)
	}
	return s
}

func jobs(role result.Role, names ...string) []family.Case {
	return family.Cases(role, func(name string) (family.Workload, error) { return Parse(name, "") }, names...)
}

// longest is the longest window that a file can set.
const longest = 10 * time.Minute

// fileSuite makes a primary case of each job of a file. The window is the longest runtime in it. Every error wraps
// ErrJobFile.
func fileSuite(name string, data []byte) (family.Suite, error) {
	jobs, err := ParseFile(name, data)
	if err != nil {
		return family.Suite{}, err
	}
	s := family.Suite{Name: "storage:" + strings.ReplaceAll(filepath.Base(name), ",", "_"), About: "the jobs of " + name}
	for _, j := range jobs {
		w, err := Parse(jobPrefix+j.Name, j.Text())
		if err != nil {
			return family.Suite{}, fmt.Errorf("%s: %w: %w", name, ErrJobFile, err)
		}
		s.Cases = append(s.Cases, family.Case{Workload: w, Role: result.Primary})
		s.Duration = max(s.Duration, min(j.Duration("runtime"), longest))
	}
	if s.Duration == 0 {
		s.Duration = standard
	}
	return s, nil
}
