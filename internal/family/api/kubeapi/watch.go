package kubeapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// marks are when the requests of a run were sent, by operation. The generator sends a request as soon as
// it has asked its source for it.
type marks struct {
	httpload.Source
	mu   sync.Mutex
	sent map[uint64]time.Time
}

func newMarks(s httpload.Source) *marks { return &marks{Source: s, sent: map[uint64]time.Time{}} }

func (m *marks) Request(n uint64) *httpload.Request {
	r := m.Source.Request(n)
	m.mu.Lock()
	m.sent[n] = time.Now()
	m.mu.Unlock()
	return r
}

// count is how many were sent.
func (m *marks) count() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.sent))
}

// since is the time that passed from sending operation n until at; false if it was never sent.
func (m *marks) since(n uint64, at time.Time) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent, ok := m.sent[n]
	return at.Sub(sent), ok
}

// at is when operation n was sent.
func (m *marks) at(n uint64) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent[n]
}

// inWindow says whether operation n of the schedule is measured.
func (r *run) inWindow(n uint64) bool {
	line := netload.NewTimeline(r.Times.Warmup, r.Times.Window)
	return line.In(netload.NewPacer(r.Workload.Rate, 0, 1).Planned(n))
}

// A delay is a distribution of how long after its request something was seen.
type delay struct {
	name string
	mu   sync.Mutex
	h    *netload.Histogram
	seen map[uint64]bool
}

func newDelay(name string) *delay {
	return &delay{name: name, h: netload.NewHistogram(), seen: map[uint64]bool{}}
}

// once counts the first time that something is seen of operation n, and reports whether this is it.
func (d *delay) once(n uint64, took time.Duration, counts bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[n] {
		return false
	}
	d.seen[n] = true
	if counts {
		d.h.Record(int64(took))
	}
	return true
}

func (d *delay) has() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(len(d.seen))
}

// missing is how long at most so many of the requests whose end was never seen have waited for it. Which of them were
// refused, and have no end, is not known; those that waited longest are counted.
func (d *delay) missing(m *marks, most uint64, counts func(uint64) bool) *netload.Histogram {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	var waits []time.Duration
	for n, at := range m.sent {
		if !d.seen[n] && counts(n) {
			waits = append(waits, now.Sub(at))
		}
	}
	slices.SortFunc(waits, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	h := netload.NewHistogram()
	for _, w := range waits[:min(uint64(len(waits)), most)] {
		h.Record(int64(w))
	}
	return h
}

// counted is how many were seen in the window.
func (d *delay) counted() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(d.h.Count())
}

// histogram is what was seen so far.
func (d *delay) histogram() *netload.Histogram {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := netload.NewHistogram()
	h.Merge(d.h)
	return h
}

// watchDelay measures how long after a request its event comes, in an open loop of creations.
func (r *run) watchDelay(ctx context.Context) error {
	if r.Workload.Rate == 0 {
		return errors.New("a watch's delay is measured at a rate: give it one")
	}
	seen := newDelay("watch")
	answered := func() uint64 { return r.result.Total.OK }
	return r.watched(ctx, newMarks(r.source), eventTime, answered, func(e apiserver.Event, n uint64, took time.Duration) {
		if e.Type == "ADDED" {
			seen.once(n, took, r.inWindow(n))
		}
	}, seen)
}

// watched has requests sent, and sees by one watch what becomes of them: see is called with each event of operation n,
// and how long after its request it came. It waits until the last of the delays, which is the latency of the case, has
// seen all that are awaited, or the time for that is over.
func (r *run) watched(
	ctx context.Context, sent *marks, limit time.Duration, awaited func() uint64,
	see func(e apiserver.Event, n uint64, took time.Duration), delays ...*delay,
) error {
	w, err := r.Watch(ctx, r.source.Inventory, func(e apiserver.Event, at time.Time) {
		n, ours := r.source.Number(e.Object.Metadata.Name)
		if took, known := sent.since(n, at); ours && known {
			see(e, n, took)
		}
	})
	if err != nil {
		return err
	}
	result, err := httpload.Do(ctx, r.web(sent))
	if err == nil {
		r.take(result)
		main := delays[len(delays)-1]
		r.await(ctx, w, limit, func() bool { return main.has() >= awaited() })
	}
	failed := w.Err()
	w.Close()
	if err != nil {
		return err
	}
	return r.conclude(failed, sent, delays)
}

// eventTime is how long an event may be on its way after the last request was answered.
const eventTime = 10 * time.Second

// await waits until all was seen, the watch ends or the time is over.
func (r *run) await(ctx context.Context, w *apiserver.Watch, limit time.Duration, all func() bool) {
	for end := time.Now().Add(limit); !all() && time.Now().Before(end) && ctx.Err() == nil && w.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
}

// conclude puts the last of the delays in the place of the requests' own latency, and the others beside it.
func (r *run) conclude(watched error, sent *marks, delays []*delay) error {
	if watched != nil {
		r.result.Invalid = append(r.result.Invalid, result.Warning{Code: result.WatchFailed, Text: watched.Error()})
	}
	requests, err := r.result.Total.Histogram()
	if err != nil {
		return err
	}
	r.distribution("request", requests)
	answered := r.result.Total.OK
	for i, d := range delays {
		seen, waited := d.histogram(), d.missing(sent, answered-min(answered, d.counted()), r.inWindow)
		if i == len(delays)-1 {
			return r.latency(seen, waited)
		}
		seen.AddFailed(waited)
		r.distribution(d.name, seen)
	}
	return nil
}

func (r *run) distribution(name string, h *netload.Histogram) {
	r.result.Distributions = append(r.result.Distributions, httpload.Distribution{Name: name, Encoded: h.Encode()})
}

// latency puts what was seen in the place of the answers' latency. Requests that were answered, and whose end was never
// seen, are failures, beside those that were refused.
func (r *run) latency(seen, waited *netload.Histogram) error {
	t, n := &r.result.Total, uint64(waited.Count())
	refused, err := netload.DecodeHistogram(t.Waited)
	if err != nil {
		return err
	}
	waited.Merge(refused)
	t.Latency, t.Waited = seen.Encode(), waited.Encode()
	if n == 0 {
		return nil
	}
	if t.Errors == nil {
		t.Errors = map[string]uint64{}
	}
	t.OK -= n
	t.Errors[httpload.TimedOut] += n
	return nil
}
