package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// sweepRuns is how many windows the search for a rate under a loss threshold may take.
const sweepRuns = 30

// Storage takes longer than anything else before its window: a disk has to be made and attached, and what is
// read has to be written first.
const (
	volumeTime = 5 * time.Minute
	layoutTime = 15 * time.Minute
	// objectsTime is for the objects that a run on an API server begins with, for those that it removes, for pods that start, and for
	// the trials of a search.
	objectsTime = 3 * time.Minute
	// vaultTime is what a Vault may take that is deployed for a run; searchTime what a search for a rate takes beside the
	// window, in windows.
	vaultTime  = 4 * time.Minute
	searchTime = 16
	// mountTime is what Vault may take, beside the window, to say how it is and to remove what a run had there: without a leader
	// its replicas keep such requests waiting.
	mountTime = time.Minute
	webDrain  = 10 * time.Second // that the last answers of a trial may take
)

// A trial is a run while it is made.
type trial struct {
	run     result.Run
	began   time.Time // with the pause before it
	opened  time.Time // when its places were asked for
	site    target.Site
	raw     []result.File
	err     error
	warning string  // about removing its places
	took    float64 // seconds
	dropped bool    // because of another run that it should have been at the same time as
}

// workload is that of a trial, with the times of the design.
func (s *session) workload(t *trial) workload.Spec {
	w := s.cases[t.run.Case].Workload
	w.Duration, w.Warmup = seconds(s.e.Design.Duration), seconds(s.e.Design.Warmup)
	return w
}

// place opens fresh places.
func (s *session) place(ctx context.Context, t *trial) {
	t.opened = s.Clock.Now()
	t.run.Start = t.opened.UTC()
	t.site, t.err = s.open(ctx, t.run.Target, Placement(s.Tool, s.cases[t.run.Case], Rotation(t.run.Block)))
	if t.err != nil {
		t.run.Setup = s.since(t.opened)
	}
	t.took = s.since(t.began)
}

// measure lets the tool measure in the places of a trial and removes them.
func (s *session) measure(ctx context.Context, t *trial) {
	r, w := &t.run, s.workload(t)
	r.Facts = append(r.Facts, t.site.Facts...)
	r.Warnings = append(r.Warnings, t.site.Warnings...)
	m, err := s.useTool(ctx, t.site, w)
	t.raw, t.err = m.Raw, err
	measured := s.Clock.Now()
	if t.site.Health != nil { // what became of the places explains what became of the run, and comes first
		r.Invalid = append(r.Invalid, s.health(ctx, t.site)...)
	}
	fill(r, m)
	r.Window = min(windowOf(m, w, err), measured.Sub(t.opened).Seconds())
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
	limit := s.Limits.Close
	if s.cases[t.run.Case].Path == target.Storage {
		limit += volumeTime
	}
	if err := s.close(ctx, t.site, limit); err != nil {
		t.warning = fmt.Sprintf("%s: removing the places of %s: %v", t.run.Target, t.run.Case, err)
		t.run.Warnings = append(t.run.Warnings, t.warning)
	}
}

func (s *session) open(ctx context.Context, name string, p target.Placement) (target.Site, error) {
	limit := s.Limits.Open
	if p.Path == target.Storage {
		limit += volumeTime
	}
	if p.Vault {
		limit += vaultTime
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	site, err := s.targets[name].Open(limited, p)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("making the places took longer than %v: %w", limit, err)
	}
	return site, err
}

func (s *session) useTool(ctx context.Context, site target.Site, w workload.Spec) (result.Measurement, error) {
	limit := w.Warmup + w.Duration + s.Limits.Grace
	if w.Kind == workload.UDPStream && w.Rate == 0 {
		limit = sweepRuns*(w.Warmup+w.Duration) + s.Limits.Grace
	}
	if w.Knee > 0 {
		limit += searchTime * (w.Warmup + w.Duration + webDrain)
	}
	if w.Kind == workload.API {
		limit += objectsTime
	}
	if w.Kind == workload.FIO {
		limit += layoutTime
	}
	if w.Kind == workload.Vault {
		limit += mountTime
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := s.Tool.Run(limited, site.Pair, w)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s took longer than %v for a window of %v: %w", s.toolOf(w), limit, w.Duration, err)
	}
	return m, err
}

// toolOf is the name of the tool that measures a workload.
func (s *session) toolOf(w workload.Spec) string {
	if t := tool.For(s.Tool, w); t != nil {
		return t.Name()
	}
	return s.Tool.Name()
}

// health is what became of the places meanwhile.
func (s *session) health(ctx context.Context, site target.Site) []string {
	limited, cancel := context.WithTimeout(ctx, s.Limits.Close)
	defer cancel()
	return site.Health(limited)
}

// close removes the places, also when ctx has ended.
func (s *session) close(ctx context.Context, site target.Site, limit time.Duration) error {
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
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s is %g: left out", v.Metric, v.Number))
			continue
		}
		r.Values = append(r.Values, v)
	}
}

// windowOf is how long a measurement measured, in seconds.
func windowOf(m result.Measurement, w workload.Spec, err error) float64 {
	switch {
	case m.Window > 0:
		return m.Window
	case err != nil:
		return 0
	}
	return w.Duration.Seconds()
}

func (s *session) since(t time.Time) float64 { return s.Clock.Now().Sub(t).Seconds() }

func seconds(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
