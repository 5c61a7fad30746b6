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

// A trial is a run while it is made.
type trial struct {
	run   result.Run
	place targets.Place
	raw   []result.File
	err   error
	ails  bool    // something became of the place
	took  float64 // seconds, with the pause before it; 0 if nothing was measured
}

// newTrial is a run that is to be made in a site. One for which there is no place has failed by that.
func (s *session) newTrial(in *site, r result.Run) *trial {
	t := &trial{run: r, place: in.place(s.placement(s.workloads[r.Case], r.Block))}
	t.run.Site = in.record.Number
	if t.err = t.place.Err; t.err != nil {
		t.run.Start, t.run.Setup = in.record.Start, in.record.Setup
	}
	return t
}

func (t *trial) placed() bool { return t.place.Err == nil }

// condition is what the run says of its place.
func (t *trial) condition() condition {
	switch {
	case t.ails:
		return gone
	case t.err != nil:
		return suspect
	}
	return sound
}

// placement is what a workload needs in a block.
func (s *session) placement(w family.Workload, block int) targets.Placement {
	return Placement(s.Tool, w, Rotation(block))
}

// measure lets the tool measure in the place of a trial, which has waited since it began.
func (s *session) measure(ctx context.Context, t *trial, began time.Time) {
	r, started := &t.run, s.Clock.Now()
	r.Start = started.UTC()
	r.Facts = append(r.Facts, t.place.Facts...)
	r.Warnings = append(r.Warnings, t.place.Warnings...)
	m, err := s.useTool(ctx, t.place, *r)
	t.raw, t.err = m.Raw, err
	measured := s.Clock.Now()
	// What became of the place explains what became of the run, and comes first.
	r.Invalid = append(s.slept(), s.health(ctx, t.place)...)
	t.ails = len(r.Invalid) > 0
	fill(r, m)
	whole := measured.Sub(started).Seconds()
	r.Window = min(windowOf(m, s.times, err), whole)
	r.Setup = whole - r.Window
	r.Cleanup = s.since(measured)
	t.took = s.since(began)
}

func (s *session) useTool(ctx context.Context, place targets.Place, r result.Run) (result.Measurement, error) {
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

// toolOf is the name of the tool that measures a workload.
func (s *session) toolOf(w family.Workload) string {
	if t := family.For(s.Tool, w); t != nil {
		return t.Name()
	}
	return s.Tool.Name()
}

// health is what became of a place meanwhile.
func (s *session) health(ctx context.Context, place targets.Place) []result.Warning {
	if place.Health == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.Limits.Close)
	defer cancel()
	var list []result.Warning
	for _, text := range place.Health(limited) {
		list = append(list, result.Warning{Code: result.PlaceAiling, Text: text})
	}
	return list
}

func fill(r *result.Run, m result.Measurement) {
	r.Values, r.Series, r.Histograms = []result.Value{}, m.Series, m.Histograms
	r.Facts = append(r.Facts, m.Facts...)
	r.Invalid = append(r.Invalid, m.Invalid...)
	r.Warnings = append(r.Warnings, m.Warnings...)
	for _, v := range m.Values {
		if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) { // it could not be written
			text := fmt.Sprintf("%s is %g: left out", v.Metric, v.Number)
			r.Warnings = append(r.Warnings, result.Warning{Code: result.NotFinite, Metric: v.Metric, Text: text})
			continue
		}
		r.Values = append(r.Values, v)
	}
}

// windowOf is how long a measurement measured, in seconds.
func windowOf(m result.Measurement, t family.Times, err error) float64 {
	switch {
	case m.Window > 0:
		return m.Window
	case err != nil:
		return 0
	}
	return t.Window.Seconds()
}

func (s *session) since(t time.Time) float64 { return s.Clock.Now().Sub(t).Seconds() }
