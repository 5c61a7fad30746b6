// Package storage is the family of what is measured on a volume: jobs of fio, by fio's own words.
//
// What the jobs tell, and what they do not:
//
//   - randread-4k-qd1 and randwrite-4k-qd1 tell how long one small operation takes when nothing else is under way:
//     what a program waits for that does one thing after another. They tell nothing of what a volume can carry.
//   - randread-4k-qd64 and randwrite-4k-qd64 tell how many small operations a volume carries; their latency is what a
//     queue of 64 makes of it, and falls with a shorter one.
//   - read-1m-qd16 and write-1m-qd16 tell the bandwidth of large files, backups and scans; not of small ones.
//   - randrw70-4k-qd16-jobs4 tells what reads and writes make of each other, in the proportion of K-Bench.
//   - write-2300-qd1-fdatasync tells how long a database waits until a write is on the disk, as etcd's documentation
//     has it checked: its 99th percentile is to be below 10 ms. That is a floor for etcd, and no comparison.
//
// All but the last go around the page cache. None tells what a file system makes of many files, directories or
// deletions.
package storage

import (
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// What storage takes longer than anything else before its window: a disk is made and attached, and what is read has to
// be written first.
const (
	volumeTime = 5 * time.Minute
	layoutTime = 15 * time.Minute
)

// PreconditionTime is the most that preconditioning may take before each run.
const PreconditionTime = 10 * time.Minute

// What storage usually takes besides its windows: a volume is made and removed, a file is written by the rule of the
// volume's bandwidth, and fio starts and ends. The size of a user's own file is not known here; it is taken for small.
const (
	usualVolume = 2 * time.Second
	usualLayout = 9 * time.Second
	usualRun    = 500 * time.Millisecond
	usualRate   = 128 << 20 // bytes a second at which files of a given size are written
)

// path is what the names of cases begin with.
const path = "storage"

// Family is the family of jobs on volumes, as the tools measure them.
func Family(tools ...family.Tool) family.Family {
	sample := []family.Sample{{Name: "storage", Workload: Job{ReadWrite: "randread", Block: 4 << 10, Depth: 1, Jobs: 1}}}
	return family.Family{
		Name: "storage", Paths: []string{path},
		Suites: suites(), Tools: tools, Kinds: sample, Offers: sample,
		File:  &family.SuiteFile{About: "each job of a job file of fio is a case", Read: file},
		Parse: func(_, name, definition string) (family.Workload, error) { return Parse(name, definition) },
	}
}

func (j Job) String() string { return path + "/" + j.Title() }

// Disturbs says what other users of the disks may feel: every job.
func (j Job) Disturbs(family.Times) string { return "it reads or writes as fast as the volume lets it" }

// Traits are those of a case.
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
		t.Nominal.Windows = 1 // a rate that is steady at once takes that to show
	}
	return t
}
