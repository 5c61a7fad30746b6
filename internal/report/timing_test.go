package report

import (
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// What a run took besides its window is said of each target, and pods and requests where there are any.
func TestTimingTellsWhatRunsTook(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	var in Input
	in.Experiment.Targets = []result.Target{{Name: "lab:native"}, {Name: "kube:a"}, {Name: "unmeasured"}}
	for i := range 3 {
		start := at.Add(time.Duration(i) * 16 * time.Second)
		in.Runs = append(in.Runs,
			result.Run{Target: "lab:native", Start: start, Setup: 0.3, Window: 10, Cleanup: 0.1},
			result.Run{Target: "kube:a", Start: start, Setup: 2, Window: 10, Cleanup: 1.5 + float64(i), Values: []result.Value{
				{Metric: "pods", Unit: unit.Count, Number: 2}, {Metric: "api-calls", Unit: unit.Count, Number: 12 + float64(i)},
			}})
	}
	got := timingOf(in).String()
	if want := "Besides its window a run took 0.4 s on lab:native; 4.5 s, 2 pods and 13 API calls on kube:a."; !strings.HasSuffix(got, want) {
		t.Errorf("got  %s\nwant …%s", got, want)
	}
}
