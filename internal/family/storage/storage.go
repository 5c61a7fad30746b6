// Package storage is the family of workloads on a volume: jobs of fio, with fio's names.
//
// What the jobs measure, and what they do not:
//
//   - randread-4k-qd1 and randwrite-4k-qd1: the time of one small operation without others in flight, as seen by a
//     program that does one thing after another; not what a volume can carry.
//   - randread-4k-qd64 and randwrite-4k-qd64: how many small operations a volume carries; their latency includes a
//     queue of 64, and falls with a shorter one.
//   - read-1m-qd16 and write-1m-qd16: the bandwidth of large files, backups and scans; not of small ones.
//   - randrw70-4k-qd16-jobs4: how reads and writes affect each other, in the proportion of K-Bench.
//   - write-2300-qd1-fdatasync: how long a database waits until a write is on the disk, by the check that etcd's
//     documentation recommends: the 99th percentile should be below 10 ms. This is a minimum for etcd, not a
//     comparison.
//
// All but the last bypass the page cache. None measures a file system with many files, directories or deletions.
package storage

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Limits of the time that storage takes before and after its windows: a disk is created and attached, and data to be
// read are written first.
const (
	volumeTime = 5 * time.Minute
	layoutTime = 15 * time.Minute
)

// PreconditionTime is the longest time of preconditioning before a run.
const PreconditionTime = 10 * time.Minute

// Usual times of storage in addition to its windows: creating and removing a volume, writing a file whose size follows
// the volume's bandwidth, and starting and ending fio. The file of a user-defined job is assumed to be small.
const (
	usualVolume = 2 * time.Second
	usualLayout = 9 * time.Second
	usualRun    = 500 * time.Millisecond
	usualRate   = 128 << 20 // bytes per second at which files of a given size are written
)

// path is the first part of the names of cases.
const path = "storage"

// Family returns the family of jobs on volumes with its tools.
func Family(tools ...family.Tool) family.Family {
	sample := []family.Sample{{Name: "storage", Workload: Job{ReadWrite: "randread", Block: 4 << 10, Depth: 1, Jobs: 1}}}
	return family.Family{
		Name: "storage", Paths: []string{path},
		Suites: suites(), Tools: tools, Kinds: sample, Offers: sample,
		File:       &family.SuiteFile{About: "each job of a job file of fio is a case", Read: fileSuite},
		Parse:      func(_, name, definition string) (family.Workload, error) { return Parse(name, definition) },
		Parameters: family.ParametersOf(parameters),
	}
}

func (j Job) String() string { return path + "/" + j.Title() }

// Disturbs returns how the job affects other users of the disks; every job does.
func (j Job) Disturbs(family.Times) string { return "it reads or writes as fast as the volume lets it" }

// Traits returns the traits of the case.
func (j Job) Traits() family.Traits {
	t := family.Traits{
		Path: path, Kind: j.Title(), Metric: j.Metric(), Definition: j.Text,
		Needs: targets.Placement{Volume: true}, Words: result.Words{Subject: j.subject(), Quantity: j.quantity()},
		Load: result.Load{
			Volume: true, Reads: j.Mixed() || j.Name == "" && !j.Writes(), SingleReads: j.singleReads(),
		},
		Limits:  family.Limits{Open: volumeTime, Close: volumeTime, Run: layoutTime},
		Nominal: family.Nominal{Site: usualVolume, First: usualLayout, Run: usualRun},
	}
	switch {
	case j.Fdatasync || j.Name != "":
		t.Nominal.First = 0
	case j.FilePerJob > 0:
		t.Nominal.First = time.Duration(j.FilePerJob*int64(j.Jobs)/usualRate) * time.Second
	}
	if j.Precondition {
		t.Limits.Run += PreconditionTime
		t.Nominal.Windows = 1 // the shortest time in which a steady rate is recognized
	}
	return t
}
