package plan_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/plan"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
)

// tolerance is the largest relative error of a forecast.
const tolerance = 0.25

// TestForecastIsTrue checks that the duration of measured experiments is predicted from nothing and from their first
// block. The time of repeated runs is not counted: that the generator of the Vault experiment waited for CPUs in 6 of
// 11 runs could not be predicted.
func TestForecastIsTrue(t *testing.T) {
	for _, name := range []string{"lab", "cluster", "storage", "vault"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var measured result.Results
			if err := json.Unmarshal(data, &measured); err != nil {
				t.Fatal(err)
			}
			e, truth := measured.Experiment, duration(measured)
			first := result.Results{Experiment: e}
			first.Sites = slices.DeleteFunc(measured.Sites, func(s result.Site) bool { return s.Block > 1 })
			first.Runs = slices.DeleteFunc(measured.Runs, func(r result.Run) bool { return r.Block > 1 })
			for what, earlier := range map[string]result.Results{"nothing": {}, "the first block": first} {
				d := plan.Learn(e, runner.CaseTimes(e, registry.Families()), earlier)
				got := plan.NewOutline(e, &d).Seconds
				t.Logf("from %s: %.1f s; it took %.1f s", what, got, truth)
				if math.Abs(got-truth) > tolerance*truth {
					t.Errorf("from %s: %.1f s, more than %.0f %% off", what, got, 100*tolerance)
				}
			}
		})
	}
}

// duration returns the seconds from the opening of the first site to the end of the last one, without repeated runs.
func duration(r result.Results) float64 {
	begin, end := r.Sites[0].Start, time.Time{}
	for _, s := range r.Sites {
		if s.Start.Before(begin) {
			begin = s.Start
		}
		if s.End().After(end) {
			end = s.End()
		}
	}
	seconds := end.Sub(begin).Seconds()
	for _, run := range r.Runs {
		if !run.Valid() {
			seconds -= plan.Pause.Seconds() + run.Setup + run.Window + run.Cleanup
		}
	}
	return seconds
}
