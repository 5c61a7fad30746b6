package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

// A trial is a run while it is made.
type trial struct {
	run     result.Run
	began   time.Time // with the pause before it
	opened  time.Time // when its places were asked for
	site    target.Single
	raw     []result.File
	err     error
	warning string  // about removing its places
	took    float64 // seconds
	dropped bool    // because of another run that it should have been at the same time as
}

// times are those of every run.
func (s *session) times() family.Times {
	return family.Times{Warmup: seconds(s.e.Design.Warmup), Window: seconds(s.e.Design.Duration)}
}

// place opens fresh places.
func (s *session) place(ctx context.Context, t *trial) {
	t.opened = s.Clock.Now()
	t.run.Start = t.opened.UTC()
	t.site, t.err = s.open(ctx, t.run.Target, s.cases[t.run.Case], Rotation(t.run.Block))
	if t.err != nil {
		t.run.Setup = s.since(t.opened)
	}
	t.took = s.since(t.began)
}

// measure lets the tool measure in the places of a trial and removes them.
func (s *session) measure(ctx context.Context, t *trial) {
	r := &t.run
	r.Facts = append(r.Facts, t.site.Facts...)
	r.Warnings = append(r.Warnings, t.site.Warnings...)
	m, err := s.useTool(ctx, t.site, s.cases[r.Case])
	t.raw, t.err = m.Raw, err
	measured := s.Clock.Now()
	if t.site.Health != nil { // what became of the places explains what became of the run, and comes first
		r.Invalid = append(r.Invalid, s.health(ctx, t.site)...)
	}
	fill(r, m)
	r.Window = min(windowOf(m, s.times(), err), measured.Sub(t.opened).Seconds())
	r.Setup = max(0, measured.Sub(t.opened).Seconds()-r.Window)
	s.leave(ctx, t)
	r.Cleanup = s.since(measured)
	if t.site.Spent != nil {
		r.Values = append(r.Values, t.site.Spent()...)
	}
	t.took = s.since(t.began)
}

// leave removes the places of a trial.
func (s *session) leave(ctx context.Context, t *trial) {
	limit := s.Limits.Close + s.cases[t.run.Case].Workload.Traits().Limits.Close
	if err := s.close(ctx, t.site, limit); err != nil {
		t.warning = fmt.Sprintf("%s: removing the places of %s: %v", t.run.Target, t.run.Case, err)
		t.run.Warnings = append(t.run.Warnings, result.Warning{Code: result.PlacesLeft, Text: t.warning})
	}
}

func (s *session) open(ctx context.Context, name string, c family.Case, rotation int) (target.Single, error) {
	limit := s.Limits.Open + c.Workload.Traits().Limits.Open
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	site, err := target.One(limited, s.targets[name], Placement(s.Tool, c.Workload, rotation))
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("making the places took longer than %v: %w", limit, err)
	}
	return site, err
}

func (s *session) useTool(ctx context.Context, site target.Single, c family.Case) (result.Measurement, error) {
	limit := c.Workload.Traits().Limits.Bound(s.times(), s.Limits.Grace)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := s.Tool.Run(limited, site.Pair, c.Workload, s.times())
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s took longer than %v for a window of %v: %w", s.toolOf(c.Workload), limit, s.times().Window, err)
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

// health is what became of the places meanwhile.
func (s *session) health(ctx context.Context, site target.Single) []result.Warning {
	limited, cancel := context.WithTimeout(ctx, s.Limits.Close)
	defer cancel()
	var list []result.Warning
	for _, text := range site.Health(limited) {
		list = append(list, result.Warning{Code: result.PlaceAiling, Text: text})
	}
	return list
}

// close removes the places, also when ctx has ended.
func (s *session) close(ctx context.Context, site target.Single, limit time.Duration) error {
	if site.Close == nil {
		return errors.New("the target gave no way to remove them")
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return site.Close(limited)
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

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
