package storage

import (
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]Job{
		"randread-4k-qd1":                    {ReadWrite: "randread", Block: 4096, Depth: 1, Jobs: 1},
		"randwrite-4k-qd64":                  {ReadWrite: "randwrite", Block: 4096, Depth: 64, Jobs: 1},
		"read-1m-qd16":                       {ReadWrite: "read", Block: 1 << 20, Depth: 16, Jobs: 1},
		"randrw70-4k-qd16-jobs4":             {ReadWrite: "randrw", Mix: 70, Block: 4096, Depth: 16, Jobs: 4},
		"randrw0-4k-qd16":                    {ReadWrite: "randrw", Block: 4096, Depth: 16, Jobs: 1},
		"rw50-8k-qd2":                        {ReadWrite: "rw", Mix: 50, Block: 8192, Depth: 2, Jobs: 1},
		"write-2300-qd1-fdatasync":           {ReadWrite: "write", Block: 2300, Depth: 1, Jobs: 1, Fdatasync: true},
		"randwrite-512-qd1024":               {ReadWrite: "randwrite", Block: 512, Depth: 1024, Jobs: 1},
		"randwrite-4k-qd64:precondition=yes": {ReadWrite: "randwrite", Block: 4096, Depth: 64, Jobs: 1, Precondition: true},
		"write-2300-qd1-fdatasync:precondition=yes": {ReadWrite: "write", Block: 2300, Depth: 1, Jobs: 1, Fdatasync: true,
			Precondition: true},
		"randrw70-4k-qd1-jobs4:ioengine=sync": {ReadWrite: "randrw", Mix: 70, Block: 4096, Depth: 1, Jobs: 4, Sync: true},
		"randrw100-4k-qd16-jobs4:file-per-job=1g,gtod-reduce=yes": {ReadWrite: "randrw", Mix: 100, Block: 4096, Depth: 16,
			Jobs: 4, FilePerJob: 1 << 30, Untimed: true},
		"randwrite-4k-qd1:ioengine=sync,file-per-job=22m,gtod-reduce=yes,precondition=yes": {ReadWrite: "randwrite",
			Block: 4096, Depth: 1, Jobs: 1, Sync: true, FilePerJob: 22 << 20, Untimed: true, Precondition: true},
		"randread-128k-qd4-jobs64":     {ReadWrite: "randread", Block: 128 << 10, Depth: 4, Jobs: 64},
		"write-4k-qd1-jobs2-fdatasync": {ReadWrite: "write", Block: 4096, Depth: 1, Jobs: 2, Fdatasync: true},
	} {
		got, err := Parse(name, "")
		if err != nil || got != want {
			t.Errorf("%s is %+v, %v", name, got, err)
		}
		if got.Title() != name {
			t.Errorf("%s is written %s", name, got)
		}
	}
	// Equivalent notations have the same title.
	if got, err := Parse("randread-1024k-qd128", ""); err != nil || got.Title() != "randread-1m-qd128" {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Parse("randwrite-4k-qd64:precondition=no", ""); err != nil || got.Title() != "randwrite-4k-qd64" {
		t.Errorf("%s, %v", got, err)
	}
	own, err := Parse("job/my_job-1", "[my_job-1]\nrw=read\n")
	if err != nil || own.Title() != "job/my_job-1" || own.Text == "" {
		t.Errorf("%+v, %v", own, err)
	}
}

func TestParseErrors(t *testing.T) {
	for name, want := range map[string]string{
		"":                                       "no job of storage",
		"randread":                               "no job of storage",
		"randread-4k":                            "no job of storage",
		"randread70-4k-qd1":                      "only rw and randrw",
		"randrw101-4k-qd1":                       "not from 0 to 100",
		"randread-0-qd1":                         "not from 512",
		"randread-32m-qd1":                       "not from 512",
		"randread-4k-qd0":                        "at least 1",
		"randread-4k-qd1-jobs0":                  "at least 1",
		"randread-4k-qd1025":                     "not from 1 to 1024",
		"randread-4k-qd99999999999999999999":     "not from 1 to 1024",
		"randread-4k-qd1-jobs65":                 "not from 1 to 64",
		"randread-4k-qd1-fdatasync":              "for writes",
		"write-4k-qd2-fdatasync":                 "one at a time",
		"randwrite-4k-qd1:precondition=maybe":    "no or yes",
		"randwrite-4k-qd1:precondition":          "not key=value",
		"randwrite-4k-qd1:size=1":                "has ioengine, file-per-job, gtod-reduce, precondition",
		"randread-4k-qd1:ioengine=psync":         "libaio or sync",
		"randread-4k-qd16:ioengine=sync":         "its queue depth is 1 and not 16",
		"randread-4k-qd1:file-per-job=1":         "whole MiB",
		"randread-4k-qd1:file-per-job=0":         "whole MiB",
		"randread-4k-qd1-jobs2:file-per-job=1t":  "1 TiB at most",
		"write-4k-qd1-fdatasync:gtod-reduce=yes": "leaves out the latencies",
		"write-4k-qd1-fdatasync:file-per-job=1m": "those of etcd's check",
		"randread-4k-qd1:precondition=yes":       "for jobs that write",
		"job/x:precondition=yes":                 "a job's name",
		"job/x":                                  "nothing says what",
		"job/":                                   "a job's name",
	} {
		got, err := Parse(name, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v, %v; wanted %q", name, got, err, want)
		}
	}
}

func TestMetric(t *testing.T) {
	for name, want := range map[string]string{
		"randread-4k-qd1": "p50", "randread-4k-qd64": "rate", "read-1m-qd1": "throughput", "randrw70-4k-qd1": "rate",
		"write-2300-qd1-fdatasync": "sync-p99", "randread-4k-qd1-jobs2": "rate",
		"randread-4k-qd1:gtod-reduce=yes": "rate", "randread-4k-qd1:ioengine=sync": "p50",
	} {
		s, err := Parse(name, "")
		if err != nil || s.Metric() != want {
			t.Errorf("%s: %s, %v; wanted %s", name, s.Metric(), err, want)
		}
	}
}

// TestPrecondition checks that preconditioning is part of a job's words, limits and nominal time.
func TestPrecondition(t *testing.T) {
	plain, err := Parse("randwrite-4k-qd64", "")
	if err != nil {
		t.Fatal(err)
	}
	long, err := Parse("randwrite-4k-qd64:precondition=yes", "")
	if err != nil {
		t.Fatal(err)
	}
	a, b := plain.Traits(), long.Traits()
	if b.Words.Subject != a.Words.Subject+", preconditioned" || b.Kind != "randwrite-4k-qd64:precondition=yes" ||
		b.Limits.Run != a.Limits.Run+PreconditionTime || b.Nominal.Windows != a.Nominal.Windows+1 || b.Metric != a.Metric {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestNominalOfGivenSize checks that the nominal time of writing files follows their size.
func TestNominalOfGivenSize(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"randread-4k-qd128": usualLayout, "randread-4k-qd128:file-per-job=10g": 80 * time.Second,
		"randrw70-4k-qd16-jobs4:file-per-job=1g": 32 * time.Second, "write-2300-qd1-fdatasync": 0,
	} {
		j, err := Parse(name, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := j.Traits().Nominal.First; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"randread-4k-qd1", "randrw70-4k-qd16-jobs4",
		"write-2300-qd1-fdatasync",
		"rw-1m-qd1:ioengine=sync,file-per-job=1g,gtod-reduce=yes,precondition=yes", "job/a",
		"read-9999999999999999999k-qd1"} {
		f.Add(name, "")
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		s, err := Parse(name, text)
		if err != nil {
			return
		}
		if again, err := Parse(s.Title(), text); err != nil || again.Name == "" && again != s {
			t.Errorf("%q is %+v, written %q, read as %+v, %v", name, s, s, again, err)
		}
	})
}
