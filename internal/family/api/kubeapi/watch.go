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
	"sync/atomic"
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
	all  atomic.Uint64
}

func newMarks(s httpload.Source) *marks { return &marks{Source: s, sent: map[uint64]time.Time{}} }

func (m *marks) Request(n uint64) *httpload.Request {
	r := m.Source.Request(n)
	m.mu.Lock()
	m.sent[n] = time.Now()
	m.mu.Unlock()
	m.all.Add(1)
	return r
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
	mu   sync.Mutex
	h    *netload.Histogram
	seen map[uint64]bool
}

func newDelay() *delay { return &delay{h: netload.NewHistogram(), seen: map[uint64]bool{}} }

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
	sent, delay := newMarks(r.source), newDelay()
	w, err := r.watch(ctx, r.source.inventory, func(e event, at time.Time) {
		if n, ours := r.source.number(e.Object.Metadata.Name); ours && e.Type == "ADDED" {
			if took, ok := sent.since(n, at); ok {
				delay.once(n, took, r.inWindow(n))
			}
		}
	})
	if err != nil {
		return err
	}
	defer w.close()
	result, err := httpload.Do(ctx, r.web(sent), 0)
	if err != nil {
		return err
	}
	r.await(ctx, w, eventTime, func() bool { return delay.has() >= result.Total.OK })
	return r.conclude(result, w.failed(), sent, map[string]*delayed{"watch": {delay, true}})
}

// eventTime is how long an event may be on its way after the last request was answered.
const eventTime = 10 * time.Second

// await waits until all was seen, the watch ends or the time is over.
func (r *run) await(ctx context.Context, w *watch, limit time.Duration, all func() bool) {
	for end := time.Now().Add(limit); !all() && time.Now().Before(end) && ctx.Err() == nil && w.failed() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
}

// A delayed is a delay among the results of a case.
type delayed struct {
	*delay
	main bool // the case's latency
}

// failedWatch is why a run must not count.
func failedWatch(err error) result.Warning {
	return result.Warning{Code: result.WatchFailed, Text: err.Error()}
}

// conclude puts the delays in the place of the requests' own latency.
func (r *run) conclude(result httpload.Result, watched error, sent *marks, delays map[string]*delayed) error {
	r.take(result)
	if watched != nil {
		r.result.Invalid = append(r.result.Invalid, failedWatch(watched))
	}
	requests, err := result.Total.Histogram()
	if err != nil {
		return err
	}
	r.distribution("request", requests)
	for _, name := range []string{"watch", "created", "scheduled", "started", "ready", "gone"} {
		d, ok := delays[name]
		if !ok {
			continue
		}
		answered := result.Total.OK
		seen, waited := d.histogram(), d.missing(sent, answered-min(answered, d.counted()), r.inWindow)
		if !d.main {
			seen.AddFailed(waited)
			r.distribution(name, seen)
			continue
		}
		if err := r.latency(seen, waited); err != nil {
			return err
		}
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
