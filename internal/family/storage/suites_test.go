package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
)

func TestSuites(t *testing.T) {
	var text strings.Builder
	for _, s := range suites() {
		fmt.Fprintf(&text, "%s: %s (%v)\n", s.Name, s.About, s.Duration)
		for _, c := range s.Cases {
			fmt.Fprintf(&text, "  %-40s %-12s %s\n", c.Name(), c.Role, c.Workload.Traits().Metric)
			again, err := family.List{Family()}.Parse(c.Name(), c.Workload.Traits().Definition)
			if err != nil || again.Workload != c.Workload {
				t.Errorf("%s: %v", c.Name(), err)
			}
		}
	}
	golden.Check(t, "testdata/suites.golden", text.String())
}

func TestFile(t *testing.T) {
	s, err := fileSuite("dir/my,jobs.fio", []byte("[global]\nruntime=30\n[a]\nrw=read\n[b]\nrw=randrw\nruntime=5m\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "storage:my_jobs.fio" || s.Duration != 5*time.Minute ||
		len(s.Cases) != 2 || s.Cases[1].Name() != "storage/job/b" {
		t.Errorf("%+v", s)
	}
	again, err := family.List{Family()}.Parse(s.Cases[1].Name(), s.Cases[1].Workload.Traits().Definition)
	if err != nil || again.Workload != s.Cases[1].Workload {
		t.Errorf("%+v, %v", again, err)
	}
	// The job file of the Constellation v2.6 report, as its authors ran it.
	const published = "[global]\ndirect=1\nioengine=libaio\nruntime=60s\nramp_time=10s\nsize=10Gi\ntime_based=1\n" +
		"group_reporting\nthread\ncpus_allowed=1\n\n\n[read_iops]\nstonewall\nreadwrite=randread\nbs=4k\niodepth=128\n"
	if s, err := fileSuite("fio.ini", []byte(published)); err != nil || len(s.Cases) != 1 || s.Duration != time.Minute {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := fileSuite("x.fio", []byte("[a]\nrw=read\n")); err != nil || s.Duration != standard {
		t.Errorf("%v, %v", s.Duration, err)
	}
	if _, err := fileSuite("x.fio", []byte("[a]\nrw=read\nexec_prerun=rm\n")); !errors.Is(err, ErrJobFile) ||
		!strings.HasPrefix(err.Error(), "x.fio:3:") {
		t.Errorf("%v", err)
	}
}
