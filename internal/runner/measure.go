package runner

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A pendingRun is a run that is not recorded yet.
type pendingRun struct {
	run         result.Run
	place       targets.Place
	raw         []result.File
	err         error
	placeFailed bool    // the place cannot be used again
	took        float64 // seconds, with the pause before the run; 0 if nothing was measured
}

// newPendingRun returns a run that is to be measured in a site. If the site has no place for it, err is set.
func (s *session) newPendingRun(in *site, r result.Run) *pendingRun {
	t := &pendingRun{run: r, place: in.place(s.placement(s.workloads[r.Case], r.Block))}
	t.run.Site = in.record.Number
	if t.err = t.place.Err; t.err != nil {
		t.run.Start, t.run.Setup = in.record.Start, in.record.Setup
	}
	return t
}

func (t *pendingRun) placed() bool { return t.place.Err == nil }

// placeState returns the state of the place after the run.
func (t *pendingRun) placeState() placeState {
	switch {
	case t.placeFailed:
		return placeLost
	case t.err != nil:
		return placeDoubtful
	}
	return placeUsable
}

// placement returns what a workload needs of a site in a block.
func (s *session) placement(w family.Workload, block int) targets.Placement {
	return Placement(s.Tool, w, Rotation(block))
}

// measure runs the tool in the place of a run and fills in the run's result. began is when the pause before it started.
func (s *session) measure(ctx context.Context, t *pendingRun, began time.Time) {
	r, started := &t.run, s.Clock.Now()
	r.Start = started.UTC()
	r.Facts = append(r.Facts, t.place.Facts...)
	r.Warnings = append(r.Warnings, t.place.Warnings...)
	m, err := s.runTool(ctx, t.place, *r)
	t.raw, t.err = m.Raw, err
	measured := s.Clock.Now()
	// A failure of the place explains a failure of the run, so it comes first.
	r.Invalid = append(s.sleepWarning(), s.placeWarnings(ctx, t.place)...)
	t.placeFailed = len(r.Invalid) > 0
	addMeasurement(r, m)
	whole := measured.Sub(started).Seconds()
	window := m.Window
	if window <= 0 && err == nil { // without a window of its own, and unless it failed before one
		window = s.times.Window.Seconds()
	}
	r.Window = min(max(window, 0), whole)
	r.Setup = whole - r.Window
	r.Cleanup = s.since(measured)
	t.took = s.since(began)
}

func (s *session) runTool(ctx context.Context, place targets.Place, r result.Run) (result.Measurement, error) {
	w, times := s.workloads[r.Case], s.times
	times.Seed = Seed(s.e, r)
	limit := w.Traits().Limits.Bound(s.times, s.Limits.Grace)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := s.Tool.Run(limited, place.Pair, w, times)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s took longer than %v for a window of %v: %w", s.toolOf(w), limit, s.times.Window, err)
	}
	return m, err
}

// toolOf returns the name of the tool that measures a workload.
func (s *session) toolOf(w family.Workload) string {
	if t := family.ToolFor(s.Tool, w); t != nil {
		return t.Name()
	}
	return s.Tool.Name()
}

// placeWarnings returns the failures that the place reports after a run.
func (s *session) placeWarnings(ctx context.Context, place targets.Place) []result.Warning {
	if place.Health == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.Limits.Close)
	defer cancel()
	var list []result.Warning
	for _, text := range place.Health(limited) {
		list = append(list, result.Warning{Code: result.PlaceUnhealthy, Text: text})
	}
	return list
}

// addMeasurement adds what a tool returned to a run. Values that are not finite become warnings.
func addMeasurement(r *result.Run, m result.Measurement) {
	r.Values, r.Series, r.Histograms = []result.Value{}, m.Series, m.Histograms
	r.Facts = append(r.Facts, m.Facts...)
	r.Invalid = append(r.Invalid, m.Invalid...)
	r.Warnings = append(r.Warnings, m.Warnings...)
	for _, v := range m.Values {
		if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) { // JSON cannot hold it
			text := fmt.Sprintf("%s is %g: left out", v.Metric, v.Number)
			r.Warnings = append(r.Warnings, result.Warning{Code: result.NotFinite, Metric: v.Metric, Text: text})
			continue
		}
		r.Values = append(r.Values, v)
	}
}

func (s *session) since(t time.Time) float64 { return s.Clock.Now().Sub(t).Seconds() }
