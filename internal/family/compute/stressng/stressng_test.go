package stressng

import (
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/program/programtest"
	"github.com/knotmeter/knotmeter/internal/golden"
)

func TestCommandLines(t *testing.T) { programtest.CommandLines(t, New()) }

// recorded has the kinds of recorded outputs of stress-ng 0.15.06.
var recorded = map[string]compute.Kind{"matrix": compute.StressNGMatrix, "vm-2": compute.StressNGVM}

func TestRecorded(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{"matrix", "vm-2"} {
		f, err := stressors[recorded[name]].parse(programtest.Recorded(t, name), 3)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s: %g a second for %g s\n", name, f.PerSecond, f.Seconds)
	}
	golden.Check(t, "testdata/recorded.golden", text.String())
}

func TestParseErrors(t *testing.T) {
	whole := string(programtest.Recorded(t, "matrix"))
	for _, text := range []string{"", "stress-ng: error: [1] no", strings.ReplaceAll(whole, " matrix ", " cpu "),
		"stress-ng: info:  [1] matrix 0 1.00 1.00 0.00 0.00 0.00",
		"stress-ng: info:  [1] matrix 1 1.0.0 1.00 0.00 1.00 1.00"} {
		if f, err := stressors[compute.StressNGMatrix].parse([]byte(text), 3); err == nil {
			t.Errorf("%.80q: %+v", text, f)
		}
	}
}

func TestSupports(t *testing.T) {
	programtest.Reasons(t, New(), map[string]string{
		"stress-ng-matrix": "", "stress-ng-vm:cpus=all": "", "stress-ng-vm:cpus=8": "",
		"stress-ng-vm:cpus=core": "cpus=all", "matrix": "stress-ng-matrix", "sysbench-cpu": "stress-ng-matrix",
	})
}

// FuzzParse checks that any output gives an error or positive numbers.
func FuzzParse(f *testing.F) {
	for name := range recorded {
		f.Add(programtest.Recorded(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for kind, of := range stressors {
			got, err := of.parse(text, 3)
			if err == nil && !(got.PerSecond > 0 && got.Seconds > 0 && got.Seconds < 1e18) {
				t.Errorf("%s: %+v", kind, got)
			}
		}
	})
}
