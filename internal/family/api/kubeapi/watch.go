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

// sendTimes is a source that records when each request is sent: the generator sends a request as soon as it has it from
// its source.
type sendTimes struct {
	httpload.Source
	mu   sync.Mutex
	sent map[uint64]time.Time // by operation
}

func newSendTimes(s httpload.Source) *sendTimes {
	return &sendTimes{Source: s, sent: map[uint64]time.Time{}}
}

func (m *sendTimes) Request(n uint64) *httpload.Request {
	r := m.Source.Request(n)
	m.mu.Lock()
	m.sent[n] = time.Now()
	m.mu.Unlock()
	return r
}

// count returns how many requests were sent.
func (m *sendTimes) count() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.sent))
}

// since returns the time from sending operation n until at, and false if it was not sent.
func (m *sendTimes) since(n uint64, at time.Time) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sent, ok := m.sent[n]
	return at.Sub(sent), ok
}

// at returns when operation n was sent.
func (m *sendTimes) at(n uint64) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent[n]
}

// inWindow reports whether operation n of the schedule is planned for the window.
func (r *run) inWindow(n uint64) bool {
	line := netload.NewTimeline(r.Times.Warmup, r.Times.Window)
	return line.In(netload.NewPacer(r.Workload.Rate, 0, 1).Planned(n))
}

// A delay is the distribution of the time from a request until its event.
type delay struct {
	name string
	mu   sync.Mutex
	h    *netload.Histogram // of the operations in the window
	seen map[uint64]bool    // all operations whose event came
}

func newDelay(name string) *delay {
	return &delay{name: name, h: netload.NewHistogram(), seen: map[uint64]bool{}}
}

// record records the event of operation n, in the histogram if inWindow is set. It ignores repeated events, and reports
// whether this is the first one.
func (d *delay) record(n uint64, took time.Duration, inWindow bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[n] {
		return false
	}
	d.seen[n] = true
	if inWindow {
		d.h.Record(int64(took))
	}
	return true
}

// seenCount returns how many operations had their event.
func (d *delay) seenCount() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(len(d.seen))
}

// longestWaits returns the waits of requests for an event that did not come: the longest ones, at most limit. The other
// requests are taken for refused ones, which have no event, because it is not known which were refused.
func (d *delay) longestWaits(m *sendTimes, limit uint64, inWindow func(uint64) bool) *netload.Histogram {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	var waits []time.Duration
	for n, at := range m.sent {
		if !d.seen[n] && inWindow(n) {
			waits = append(waits, now.Sub(at))
		}
	}
	slices.SortFunc(waits, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	h := netload.NewHistogram()
	for _, w := range waits[:min(uint64(len(waits)), limit)] {
		h.Record(int64(w))
	}
	return h
}

// inWindowCount returns how many operations in the window had their event.
func (d *delay) inWindowCount() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return uint64(d.h.Count())
}

// histogram returns a copy of the histogram.
func (d *delay) histogram() *netload.Histogram {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := netload.NewHistogram()
	h.Merge(d.h)
	return h
}

// watchDelay measures how long after a request to create an object its event comes, in an open loop.
func (r *run) watchDelay(ctx context.Context) error {
	if r.Workload.Rate == 0 {
		return errors.New("a watch's delay is measured at a rate: give it one")
	}
	seen := newDelay("watch")
	answered := func() uint64 { return r.result.Total.OK }
	record := func(e apiserver.Event, n uint64, took time.Duration) {
		if e.Type == "ADDED" {
			seen.record(n, took, r.inWindow(n))
		}
	}
	return r.measureEvents(ctx, newSendTimes(r.source), eventTime, answered, record, seen)
}

// measureEvents sends the requests and watches their objects. It calls record for each event with the operation n and
// the time since its request. The last of the delays is the latency of the case: measureEvents waits until it has as
// many operations as awaited returns, at most for limit after the load.
func (r *run) measureEvents(
	ctx context.Context, sent *sendTimes, limit time.Duration, awaited func() uint64,
	record func(e apiserver.Event, n uint64, took time.Duration), delays ...*delay,
) error {
	w, err := r.Watch(ctx, r.source.RunObjects, func(e apiserver.Event, at time.Time) {
		n, ours := r.source.Number(e.Object.Metadata.Name)
		if took, known := sent.since(n, at); ours && known {
			record(e, n, took)
		}
	})
	if err != nil {
		return err
	}
	result, err := httpload.SearchAndRun(ctx, r.loadConfig(sent))
	if err == nil {
		r.setResult(result)
		main := delays[len(delays)-1]
		r.await(ctx, w, limit, func() bool { return main.seenCount() >= awaited() })
	}
	watchErr := w.Err()
	w.Close()
	if err != nil {
		return err
	}
	return r.setDelays(watchErr, sent, delays)
}

// eventTime is how long after the last response events may still come.
const eventTime = 10 * time.Second

// await waits until done returns true, the watch ends, or limit is over.
func (r *run) await(ctx context.Context, w *apiserver.Watch, limit time.Duration, done func() bool) {
	for end := time.Now().Add(limit); !done() && time.Now().Before(end) && ctx.Err() == nil && w.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
}

// setDelays replaces the latency of the requests by the last of the delays, and adds the others, and the requests' own
// latency, as distributions.
func (r *run) setDelays(watchErr error, sent *sendTimes, delays []*delay) error {
	if watchErr != nil {
		r.result.Invalid = append(r.result.Invalid, result.Warning{Code: result.WatchFailed, Text: watchErr.Error()})
	}
	requests, err := r.result.Total.Histogram()
	if err != nil {
		return err
	}
	r.addDistribution("request", requests)
	answered := r.result.Total.OK
	for i, d := range delays {
		seen, waited := d.histogram(), d.longestWaits(sent, answered-min(answered, d.inWindowCount()), r.inWindow)
		if i == len(delays)-1 {
			return r.setLatency(seen, waited)
		}
		seen.AddFailed(waited)
		r.addDistribution(d.name, seen)
	}
	return nil
}

func (r *run) addDistribution(name string, h *netload.Histogram) {
	r.result.Distributions = append(r.result.Distributions, httpload.Distribution{Name: name, Encoded: h.Encode()})
}

// setLatency replaces the latency of the responses by seen. Requests that were answered but had no event, with their
// waits in waited, become failures, in addition to those that were refused.
func (r *run) setLatency(seen, waited *netload.Histogram) error {
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
