// Package storage is the suites of storage cases: jobs of fio on a volume.
//
// What the jobs tell, and what they do not:
//
//   - randread-4k-qd1 and randwrite-4k-qd1 tell how long one small operation takes when nothing else is under way: what a
//     program waits for that does one thing after another. They tell nothing of what a volume can carry.
//   - randread-4k-qd64 and randwrite-4k-qd64 tell how many small operations a volume carries; their latency is what a queue
//     of 64 makes of it, and falls with a shorter one.
//   - read-1m-qd16 and write-1m-qd16 tell the bandwidth of large files, backups and scans; not of small ones.
//   - randrw70-4k-qd16-jobs4 tells what reads and writes make of each other, in the proportion of K-Bench.
//   - write-2300-qd1-fdatasync tells how long a database waits until a write is on the disk, as etcd's documentation has it
//     checked: its 99th percentile is to be below 10 ms. That is a floor for etcd, and no comparison.
//
// All but the last go around the page cache. None tells what a file system makes of many files, directories or deletions.
package storage

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/jobfile"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/suite"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// The windows of runs. Disks take longer than networks to show what they are, and a minute of every run is for writing
// what is to be read, so that a short window would save little.
const (
	standard = 10 * time.Second
	short    = 2500 * time.Millisecond
)

// Suites are all of them but those that a file makes.
func Suites() []suite.Suite {
	return []suite.Suite{
		// Latency, operations, bandwidth, and what a database waits for; each is decided on. The mix and single writes are shown.
		newSuite("storage", "latency, operations, bandwidth and fdatasync of a volume, by fio", standard, jobs(result.Primary,
			"randread-4k-qd1", "randread-4k-qd64", "randwrite-4k-qd64", "read-1m-qd16", "write-1m-qd16", "write-2300-qd1-fdatasync"),
			jobs(result.Exploratory, "randwrite-4k-qd1", "randrw70-4k-qd16-jobs4")),
		newSuite("storage:quick", "one case each of latency, operations, bandwidth and fdatasync, in short runs", short, jobs(result.Primary,
			"randread-4k-qd1", "randwrite-4k-qd64", "read-1m-qd16", "write-2300-qd1-fdatasync")),
		// Of the twelve jobs of K-Bench's dp_fio the three on the volume with libaio, which make the four figures that were
		// published; with latencies (K-Bench leaves them out) and one file for the four threads instead of four.
		newSuite("storage:kbench", "the asynchronous patterns of K-Bench that the Constellation v2.0 report has", standard, jobs(result.Primary,
			"randrw70-4k-qd16-jobs4", "randrw100-4k-qd16-jobs4", "randrw0-4k-qd16-jobs4")),
		// One thread each, as published, but not pinned to CPU 1 (cpus_allowed=1 there), and for the design's duration
		// instead of once for 60 s.
		newSuite("storage:constellation", "the IOPS and bandwidth jobs of the Constellation v2.6 report", standard, jobs(result.Primary,
			"randread-4k-qd128", "randwrite-4k-qd128", "randread-1m-qd128", "randwrite-1m-qd128")),
		newSuite("storage:etcd", "write and fdatasync as etcd does it; its documentation wants a p99 below 10 ms", standard, jobs(result.Primary,
			"write-2300-qd1-fdatasync")),
	}
}

func newSuite(name, about string, window time.Duration, cases ...[]suite.Case) suite.Suite {
	s := suite.Suite{Name: name, About: about, Duration: window}
	for _, list := range cases {
		s.Cases = append(s.Cases, list...)
	}
	return s
}

func jobs(role result.Role, names ...string) []suite.Case {
	var cases []suite.Case
	for _, name := range names {
		w, err := workload.ParseIO(name, "")
		if err != nil {
			panic("a job of a suite is none: " + err.Error())
		}
		cases = append(cases, suite.Case{Path: target.Storage, Workload: w, Role: role})
	}
	return cases
}

// longest is the window that a file may ask for.
const longest = 10 * time.Minute

// File makes a case of each job of a file, all of them primary. The window is the longest runtime in it. Every error Is
// jobfile.ErrInvalid and names the line.
func File(name string, data []byte) (suite.Suite, error) {
	jobs, err := jobfile.Parse(name, data)
	if err != nil {
		return suite.Suite{}, err
	}
	s := suite.Suite{Name: "storage:" + strings.ReplaceAll(filepath.Base(name), ",", "_"), About: "the jobs of " + name}
	for _, j := range jobs {
		w, err := workload.ParseIO("job/"+j.Name, j.Text())
		if err != nil {
			return suite.Suite{}, fmt.Errorf("%s: %w: %w", name, jobfile.ErrInvalid, err)
		}
		s.Cases = append(s.Cases, suite.Case{Path: target.Storage, Workload: w, Role: result.Primary})
		s.Duration = max(s.Duration, min(j.Duration("runtime"), longest))
	}
	if s.Duration == 0 {
		s.Duration = standard
	}
	return s, nil
}
