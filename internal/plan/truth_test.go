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
)

// tolerance is how far a forecast may be from what then happened.
const tolerance = 0.25

// Experiments that were measured are predicted before anything of them was, and from their first block. What runs took
// that had to be repeated is not counted: that the generator of the one with Vault had to wait for CPUs in 6 of 11 runs
// is nothing to foresee.
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
			e, truth := measured.Experiment, lasted(measured)
			first := result.Results{Experiment: e}
			first.Sites = slices.DeleteFunc(measured.Sites, func(s result.Site) bool { return s.Block > 1 })
			first.Runs = slices.DeleteFunc(measured.Runs, func(r result.Run) bool { return r.Block > 1 })
			for what, earlier := range map[string]result.Results{"nothing": {}, "the first block": first} {
				d := plan.Learn(e, registry.Families(), earlier)
				got := plan.NewOutline(e, &d).Seconds
				t.Logf("from %s: %.1f s; it took %.1f s", what, got, truth)
				if math.Abs(got-truth) > tolerance*truth {
					t.Errorf("from %s: %.1f s, more than %.0f %% off", what, got, 100*tolerance)
				}
			}
		})
	}
}

// lasted is the seconds from the first site's making to the last one's end, without those of repeated runs.
func lasted(r result.Results) float64 {
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
