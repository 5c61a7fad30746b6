package sysbench

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program/programtest"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/stats"
)

func TestCommandLines(t *testing.T) { programtest.CommandLines(t, New()) }

// recorded has the kinds of recorded outputs of sysbench 1.0.20.
var recorded = map[string]compute.Kind{"cpu": compute.SysbenchCPU, "memory-2": compute.SysbenchMemory}

func TestRecorded(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"cpu", "memory-2"} {
		f, err := tests[recorded[name]].parse(programtest.Recorded(t, name), 3)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s: %s, %.9g a second for %g s, of each second %.9g\n", name, f.Version, f.PerSecond, f.Seconds,
			f.Steps)
		// The total and the seconds are counted apart.
		if middle := stats.Median(f.Steps); math.Abs(middle/f.PerSecond-1) > 0.02 {
			t.Errorf("%s: %g a second, and %g in its seconds", name, f.PerSecond, middle)
		}
	}
	golden.Check(t, "testdata/recorded.golden", text.String())
}

func TestParseErrors(t *testing.T) {
	whole := string(programtest.Recorded(t, "cpu"))
	for _, text := range []string{"", "FATAL: Invalid value", "sysbench 1.0.20\n",
		strings.Replace(whole, "events per second", "events", 1), strings.Replace(whole, "total time", "time", 1)} {
		if f, err := tests[compute.SysbenchCPU].parse([]byte(text), 3); err == nil {
			t.Errorf("%.80q: %+v", text, f)
		}
	}
	if f, err := tests[compute.SysbenchMemory].parse([]byte(whole), 3); err == nil {
		t.Errorf("the report of another test: %+v", f)
	}
}

func TestSupports(t *testing.T) {
	programtest.Reasons(t, New(), map[string]string{
		"sysbench-cpu": "", "sysbench-memory:cpus=all": "", "sysbench-cpu:cpus=8": "",
		"sysbench-cpu:cpus=core": "cpus=all", "sort": "sysbench-cpu", "stress-ng-vm": "sysbench-cpu",
	})
}

// FuzzParse checks that any output gives an error or positive numbers.
func FuzzParse(f *testing.F) {
	for name := range recorded {
		f.Add(programtest.Recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for kind, of := range tests {
			got, err := of.parse(text, 3)
			if err == nil && !(got.PerSecond > 0 && got.Seconds > 0 && got.Seconds < 1e6) {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	})
}
