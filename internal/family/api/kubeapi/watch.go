package kubeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	httpload "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/result"
)

// An event is as much of one as matters here.
type event struct {
	Type   string `json:"type"` // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status  json.RawMessage `json:"status"`
		Message string          `json:"message"` // of an error
	} `json:"object"`
}

// podStatus is of a pod's status what says how far it is.
type podStatus struct {
	Conditions []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	} `json:"conditions"`
	ContainerStatuses []struct {
		State struct {
			Running *struct{} `json:"running"`
			Waiting *struct {
				Reason  string `json:"reason"`
				Message string `json:"message"`
			} `json:"waiting"`
		} `json:"state"`
	} `json:"containerStatuses"`
}

func (p podStatus) is(condition string) bool {
	for _, c := range p.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

func (p podStatus) started() bool {
	for _, c := range p.ContainerStatuses {
		if c.State.Running == nil {
			return false
		}
	}
	return len(p.ContainerStatuses) > 0
}

// A watch tells of the objects of a run as the server does.
type watch struct {
	body  io.ReadCloser
	ended chan struct{}
	err   error // once ended
}

// watch begins to watch the objects of the run from now on. seen gets each event with the time at which its
// last byte was read, from one goroutine.
func (c *client) watch(ctx context.Context, i inventory, seen func(event, time.Time)) (*watch, error) {
	l, err := c.list(ctx, i)
	if err != nil {
		return nil, err
	}
	path := i.all() + "?watch=1&" + i.selector() + "&resourceVersion=" + l.Metadata.ResourceVersion
	answer, err := c.ask(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, &refusal{Status: answer.StatusCode, Message: fmt.Sprintf("a watch of %s is answered with status %d",
			i.plural, answer.StatusCode)}
	}
	w := &watch{body: answer.Body, ended: make(chan struct{})}
	go w.read(seen)
	return w, nil
}

func (w *watch) read(seen func(event, time.Time)) {
	defer close(w.ended)
	in := json.NewDecoder(w.body)
	for {
		var e event
		if err := in.Decode(&e); err != nil {
			w.err = fmt.Errorf("the watch ended: %w", err)
			return
		}
		if e.Type == "ERROR" {
			w.err = fmt.Errorf("the watch ended: %s", e.Object.Message)
			return
		}
		seen(e, time.Now())
	}
}

func (w *watch) close() {
	_ = w.body.Close()
	<-w.ended
}

// failed is why the watch ended before it was closed.
func (w *watch) failed() error {
	select {
	case <-w.ended:
		return w.err
	default:
		return nil
	}
}

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

// number is the operation that an object was made by.
func (i inventory) number(name string) (uint64, bool) {
	text, ok := strings.CutPrefix(name, "knotmeter-"+i.run+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
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

// once counts the first time that something is seen of operation n.
func (d *delay) once(n uint64, took time.Duration, counts bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen[n] {
		return
	}
	d.seen[n] = true
	if counts {
		d.h.Record(int64(took))
	}
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
	return r.watched(ctx, newMarks(r.source), eventTime, answered, func(e event, n uint64, took time.Duration) {
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
	see func(e event, n uint64, took time.Duration), delays ...*delay,
) error {
	w, err := r.watch(ctx, r.source.inventory, func(e event, at time.Time) {
		n, ours := r.source.number(e.Object.Metadata.Name)
		if took, known := sent.since(n, at); ours && known {
			see(e, n, took)
		}
	})
	if err != nil {
		return err
	}
	result, err := httpload.Do(ctx, r.web(sent), 0)
	if err == nil {
		r.take(result)
		main := delays[len(delays)-1]
		r.await(ctx, w, limit, func() bool { return main.has() >= awaited() })
	}
	failed := w.failed()
	w.close()
	if err != nil {
		return err
	}
	return r.conclude(failed, sent, delays)
}

// eventTime is how long an event may be on its way after the last request was answered.
const eventTime = 10 * time.Second

// await waits until all was seen, the watch ends or the time is over.
func (r *run) await(ctx context.Context, w *watch, limit time.Duration, all func() bool) {
	for end := time.Now().Add(limit); !all() && time.Now().Before(end) && ctx.Err() == nil && w.failed() == nil; {
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
