// Package native is the tool that measures with this program's own load generator: it starts an agent on each host of a
// pair, sends both the same run, and merges their reports into one measurement.
package native

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// idleTime is how long each agent watches its machine before its first run to learn the idle level.
const idleTime = 300 * time.Millisecond

// minSweepWindow is the shortest window for a rate that was searched for: long enough that buffers cannot hide a rate
// above the path's capacity.
const minSweepWindow = 200 * time.Millisecond

// A Tool runs the native generator. It is safe for concurrent use, though concurrent runs disturb each other.
type Tool struct {
	// Bare omits CPU time by layer and counters, so that their cost can be measured.
	Bare bool
}

// New returns the native tool.
func New() *Tool { return &Tool{} }

// Name returns the name for --tool.
func (t *Tool) Name() string { return "native" }

// Supports returns an error that wraps result.ErrNotSupported for datagrams that are too small to be numbered, pings of
// Services and workloads of other families.
func (t *Tool) Supports(w family.Workload) error {
	s, is := network.Timed(w, family.Times{})
	return supports(s, is, w)
}

func supports(w netload.Spec, is bool, given family.Workload) error {
	if !is || !slices.Contains(netload.Kinds(), w.Kind) {
		return result.NotSupported(fmt.Sprintf("the native generator has no workload %q", given))
	}
	if own, _ := given.(network.Workload); w.Kind == netload.Ping && own.Path.Service() {
		return result.NotSupported("a Service forwards ports, and pings have none: measure the path to the pod itself")
	}
	if w.Kind.Datagrams() && w.Size > 0 && w.Size < netload.MinDatagram {
		return result.NotSupported(fmt.Sprintf("%s numbers its datagrams and needs at least %d bytes for that, not "+
			"%d", w.Kind, netload.MinDatagram, w.Size))
	}
	return nil
}

// Program returns "": the tool needs no program but the agent.
func (t *Tool) Program(family.Workload) string { return "" }

// Metrics returns the metrics of the workload.
func (t *Tool) Metrics(w family.Workload) []metric.Metric {
	s, _ := network.Timed(w, family.Times{})
	return metricsOf(s.Kind)
}

// Run carries out w once.
func (t *Tool) Run(
	ctx context.Context, p host.Pair, w family.Workload, times family.Times,
) (result.Measurement, error) {
	s, is := network.Timed(w, times)
	if err := supports(s, is, w); err != nil {
		return result.Measurement{}, err
	}
	run, err := t.plan(p, s)
	if err != nil {
		return result.Measurement{}, err
	}
	if s.Searches() {
		return t.search(ctx, p, s, run)
	}
	done, err := t.runAgents(ctx, p, run)
	if err != nil {
		return result.Measurement{Raw: run.raw(p)}, err
	}
	m, err := merge(done)
	m.Raw = run.raw(p)
	return m, err
}

// runAgents carries out a run and returns the reports of both sides.
func (t *Tool) runAgents(ctx context.Context, p host.Pair, r *run) (sides, error) {
	if err := r.runBothSides(ctx, p); err != nil {
		return sides{}, err
	}
	return sides{
		Spec: r.client.config.Workload, Shared: p.Shared, CPULimit: p.CPULimit,
		Client: r.client.report, Server: r.server.report,
	}, nil
}

// search carries out a run that searches for a rate, and then windows at the rate found and below, until the loss of
// one is within the threshold. The raw files of that window have the usual names; those of the search and of earlier
// windows have a prefix.
func (t *Tool) search(ctx context.Context, p host.Pair, w netload.Spec, r *run) (m result.Measurement, err error) {
	var raw []result.File
	keep := func(prefix string) {
		for _, f := range r.raw(p) {
			raw = append(raw, result.File{Name: prefix + f.Name, Data: f.Data})
		}
	}
	searched, err := t.runAgents(ctx, p, r)
	keep("search.")
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	found := searched.Client.Sweep
	if found == nil {
		return result.Measurement{Raw: raw}, fmt.Errorf("the agent on %s searched for no rate: it is another version's",
			p.Client.Name())
	}
	step, before := found.Step, found.Rate
	last, err := stepDown(found.Rate, func(n int, rate float64) (s sides, err error) {
		if n > 1 {
			keep(fmt.Sprintf("window-%d.", n-1))
		}
		if r, err = t.plan(p, w); err != nil {
			return s, err
		}
		r.client.config.Found, r.server.config.Found = rate, rate
		if s, err = t.runAgents(ctx, p, r); err == nil {
			step, before = max(step, before/rate-1), rate // what the window before lost bounds the rate from above
			s.Client.Sweep = &netload.SweepReport{Rate: rate, Trials: found.Trials, Step: step}
		}
		return s, err
	})
	keep("")
	if err == nil {
		m, err = merge(last)
	}
	m.Raw = raw
	return m, err
}

// stepDown measures a window at a rate, and further windows at lower and lower rates, until one loses no more than the
// threshold or receives nothing, or netload.SearchWindows were measured. n is the number of the window, from 1.
func stepDown(rate float64, measure func(n int, rate float64) (sides, error)) (s sides, err error) {
	for n := 1; ; n++ {
		if s, err = measure(n, rate); err != nil || s.loss() <= s.Spec.Loss || s.received() == 0 ||
			n == netload.SearchWindows {
			return s, err
		}
		received := s.received() / s.window()
		if s.Spec.Direction == netload.Both {
			received /= 2
		}
		rate = netload.StepDown(rate, received, n)
	}
}

// A run holds the configurations of both sides and their results.
type run struct {
	token          netload.Token
	client, server side
	ready          chan json.RawMessage // the server's address, once
}

// A side is one agent's part of a run.
type side struct {
	config     netload.Config
	transcript agent.Transcript
	report     netload.Report
}

// plan returns the configurations of a run. Only the token in them is random.
func (t *Tool) plan(p host.Pair, w netload.Spec) (*run, error) {
	w, err := w.Resolved()
	if err != nil {
		return nil, err
	}
	if w.Searches() && w.Duration < minSweepWindow {
		return nil, result.NotSupported(fmt.Sprintf("udp-stream searches for a rate and needs a window of at least %v for "+
			"that, not %v; give it a rate= instead", minSweepWindow, w.Duration))
	}
	if w.Kind.Datagrams() {
		w = w.Sized(cmp.Or(w.Size, network.Datagram(p.MTU, p.Dial.Addr(), netload.MinDatagram)))
	}
	if w.OpenLoop() || w.Kind == netload.Ping {
		if err := netload.CheckMedian(w.Rate, w.Warmup, w.Duration); err != nil {
			return nil, err
		}
	}
	r := &run{token: netload.NewToken(), ready: make(chan json.RawMessage, 1)}
	clientCPUs, serverCPUs := cpus(p, w)
	samples := !t.Bare && w.Kind != netload.Unloaded // without traffic there are no layers
	r.client.config = netload.Config{Role: netload.Client, Addr: p.Dial,
		CPUs: clientCPUs, Workload: w, Idle: idleTime, Profile: samples, Count: !t.Bare}
	r.server.config = netload.Config{Role: netload.Server, Addr: p.Listen,
		CPUs: serverCPUs, Workload: w, Idle: idleTime, Profile: samples && !p.Shared, Count: !t.Bare}
	return r, nil
}

// cpus returns the CPUs to which the workers of both sides are pinned. If a client waits for each answer, it never
// works at the same time as its server; on a shared machine they share a CPU, because waking another CPU takes longer
// than most datapaths do, and varies more than they differ (figures in bench/README.md). The choice depends on the
// workload alone, so it is the same for every target.
func cpus(p host.Pair, w netload.Spec) (client, server []int) {
	client, server = p.Client.CPUs(), p.Server.CPUs()
	turns := !w.Kind.Stream() && w.Kind != netload.TCPRRLoaded && !w.OpenLoop() && w.Flows == 1
	if p.Shared && turns && len(client) > 0 {
		return client[:1], client[:1]
	}
	return client, server
}

// runBothSides makes both agents carry out their sides, at the same time unless the server's port is unknown before it
// listens.
func (r *run) runBothSides(ctx context.Context, p host.Pair) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var both sync.WaitGroup
	defer both.Wait()
	begin := func(h host.Host, s *side) {
		both.Go(func() {
			if err := r.carryOut(ctx, h, s); err != nil {
				// The other side cannot continue.
				cancel(fmt.Errorf("%s: %w", s.config.Role, err))
			}
		})
	}
	begin(p.Server, &r.server)
	if r.client.config.Addr.Port() == 0 {
		if err := r.awaitPort(ctx, p); err != nil {
			cancel(err)
			return err
		}
	}
	begin(p.Client, &r.client)
	both.Wait()
	return context.Cause(ctx)
}

// carryOut makes the agent on h carry out one side of the run.
func (r *run) carryOut(ctx context.Context, h host.Host, s *side) (err error) {
	s.report, err = agent.Do[netload.Report](ctx, h, r.request(s), func(e agent.Event) {
		s.transcript.Add(e)
		if e.Event == agent.Ready {
			r.ready <- e.Body
		}
	})
	return err
}

// request returns the request for a side's agent.
func (r *run) request(s *side) agent.Request {
	token, _ := r.token.MarshalText() // never fails
	return agent.Request{Verb: netload.Verb, Token: string(token), Body: s.config}
}

// awaitPort waits for the server's port and sets it in the client's address.
func (r *run) awaitPort(ctx context.Context, p host.Pair) error {
	select {
	case text := <-r.ready:
		var at netip.AddrPort
		if err := json.Unmarshal(text, &at); err != nil {
			return fmt.Errorf("server on %s: ready at %q: %w", p.Server.Name(), text, err)
		}
		dial := &r.client.config.Addr
		*dial = netip.AddrPortFrom(dial.Addr(), at.Port())
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raw returns the raw files: the commands, the requests without their secret, and the agents' events.
func (r *run) raw(p host.Pair) []result.File {
	file := func(name string, data []byte) result.File { return result.File{Name: name, Data: data} }
	var files []result.File
	var commands bytes.Buffer
	for _, side := range []struct {
		host host.Host
		*side
	}{{p.Client, &r.client}, {p.Server, &r.server}} {
		role := string(side.config.Role)
		fmt.Fprintf(&commands, "%s: %s < %s.request.json\n", side.host.Name(), host.Agent, role)
		files = append(files, file(role+".request.json", r.request(side.side).Record()),
			file(role+".events.ndjson", side.transcript.Bytes()))
	}
	return append(files, file("commands.txt", commands.Bytes()))
}
