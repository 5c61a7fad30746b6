// Package native is the tool that measures with this program's own load generator: it starts an
// agent on each host of a pair, gives both the same run, and merges what they report into one
// measurement. It knows the agents as a command line, a specification and lines of JSON.
package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/tool/agents"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// idleTime is how long the first run on a host watches the machine to learn its idle level.
const idleTime = 300 * time.Millisecond

// defaultMTU is what the datagrams of udp-stream are made for where the path's MTU is not known: the
// smallest that every IPv6 path has.
const defaultMTU = 1280

// leastSweep is the shortest window in which the search for a rate has time for trials.
const leastSweep = 200 * time.Millisecond

// A Tool runs the native generator. It is safe for concurrent use, though concurrent runs disturb
// each other.
type Tool struct {
	mu   sync.Mutex
	idle map[string]float64 // busy CPUs of the idle machine, by host
}

// New returns the native tool.
func New() *Tool { return &Tool{idle: map[string]float64{}} }

// Name is what --tool takes.
func (t *Tool) Name() string { return "native" }

// Supports says that every network workload is supported, but for datagrams that are too small to be numbered.
func (t *Tool) Supports(w workload.Spec) error {
	if !slices.Contains(workload.Kinds(), w.Kind) {
		return result.NotSupported(fmt.Sprintf("the native generator has no workload %q", w.Kind))
	}
	if w.Kind == workload.UDPStream && w.Size > 0 && w.Size < netload.MinDatagram {
		return result.NotSupported(fmt.Sprintf("udp-stream numbers its datagrams and needs at least %d bytes for that, not %d", netload.MinDatagram, w.Size))
	}
	return nil
}

// Program is none: the agent is this program.
func (t *Tool) Program(workload.Spec) string { return "" }

// Metrics are those of the workload.
func (t *Tool) Metrics(w workload.Spec) []metric.Metric { return metricsOf(w.Kind) }

// Run does w once.
func (t *Tool) Run(ctx context.Context, p host.Pair, w workload.Spec) (result.Measurement, error) {
	if err := t.Supports(w); err != nil {
		return result.Measurement{}, err
	}
	run, err := t.plan(p, w)
	if err != nil {
		return result.Measurement{}, err
	}
	client, server, err := run.do(ctx, p)
	raw := run.raw(p)
	if err != nil {
		return result.Measurement{Raw: raw}, err
	}
	t.learn(p, client, server)
	t.recall(p, client, server)
	m, err := merge(sides{Spec: run.client.Workload, Shared: p.Shared, Client: *client, Server: *server})
	m.Raw = raw
	return m, err
}

// A run is two specifications and what came of them.
type run struct {
	client, server   agent.Spec
	clientO, serverO *agents.Output
}

// plan makes the specifications of a run; all that is random in it is the token.
func (t *Tool) plan(p host.Pair, w workload.Spec) (*run, error) {
	w, err := w.Resolved()
	if err != nil {
		return nil, err
	}
	if w.Kind == workload.UDPStream && w.Rate == 0 && w.Duration < leastSweep {
		return nil, result.NotSupported(fmt.Sprintf("udp-stream searches for a rate and needs a window of at least %v for that, not %v; give it a rate= instead", leastSweep, w.Duration))
	}
	if w.Kind == workload.UDPStream && w.Size == 0 {
		w.Size = datagram(p.MTU, p.Dial.Addr())
	}
	if err := netload.CheckMedian(w); err != nil {
		return nil, err
	}
	token := netload.NewToken()
	spec := agent.Spec{Version: agent.SpecVersion, Token: token, Workload: w}
	r := &run{client: spec, server: spec, clientO: agents.NewOutput(), serverO: agents.NewOutput()}
	clientCPUs, serverCPUs := cpus(p, w)
	r.client.Role, r.client.Address, r.client.CPUs, r.client.Idle = netload.Client, p.Dial, clientCPUs, t.watch(p.Client)
	r.server.Role, r.server.Address, r.server.CPUs, r.server.Idle = netload.Server, p.Listen, serverCPUs, t.watch(p.Server)
	return r, nil
}

// cpus is where the workers of both sides are pinned. A client that waits for each answer and its server
// never work at the same time; where they share a machine they share a CPU, because waking another one
// takes longer than most datapaths do, and varies more than they differ (bench/README.md has the
// figures). It depends on the workload alone, so it is the same for every target.
func cpus(p host.Pair, w workload.Spec) (client, server []int) {
	client, server = p.Client.CPUs(), p.Server.CPUs()
	turns := !w.Kind.Stream() && w.Kind != workload.TCPRRLoaded && !w.OpenLoop() && w.Flows == 1
	if p.Shared && turns && len(client) > 0 {
		return client[:1], client[:1]
	}
	return client, server
}

// datagram is the payload that fills an MTU: less the headers of IP and UDP.
func datagram(mtu int, a netip.Addr) int {
	if mtu <= 0 {
		mtu = defaultMTU
	}
	header := 20 + 8
	if a.Is6() && !a.Is4In6() {
		header = 40 + 8
	}
	return min(max(mtu-header, netload.MinDatagram), workload.MaxDatagram)
}

// do starts both agents and waits for both. They start at the same time, unless the server's port is
// not known before it listens.
func (r *run) do(ctx context.Context, p host.Pair) (client, server *netload.Report, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 2)
	start := func(h host.Host, spec agent.Spec, out *agents.Output) {
		err := agents.Run(ctx, h, spec, out)
		if err != nil {
			// The other one has nothing left to do.
			cancel(fmt.Errorf("%s: %w", spec.Role, err))
		}
		ended <- err
	}
	go start(p.Server, r.server, r.serverO)
	if r.client.Address.Port() == 0 {
		if err := r.awaitPort(ctx, p); err != nil {
			<-ended
			return nil, nil, err
		}
	}
	go start(p.Client, r.client, r.clientO)
	for range 2 {
		<-ended
	}
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	client, server = r.clientO.Result().Report, r.serverO.Result().Report
	if client == nil || server == nil {
		return nil, nil, fmt.Errorf("an agent's result has no report")
	}
	return client, server, nil
}

// awaitPort lets the client dial the port that the server got.
func (r *run) awaitPort(ctx context.Context, p host.Pair) error {
	select {
	case text := <-r.serverO.Ready:
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			return fmt.Errorf("server on %s: ready at %q: %w", p.Server.Name(), text, err)
		}
		r.client.Address = netip.AddrPortFrom(r.client.Address.Addr(), at.Port())
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raw is the evidence: the commands, the specifications without their secret, and what the agents said.
func (r *run) raw(p host.Pair) []result.File {
	file := func(name string, data []byte) result.File { return result.File{Name: name, Data: data} }
	var files []result.File
	var commands bytes.Buffer
	for _, s := range []struct {
		host host.Host
		spec agent.Spec
		out  *agents.Output
	}{{p.Client, r.client, r.clientO}, {p.Server, r.server, r.serverO}} {
		fmt.Fprintf(&commands, "%s: %s < %s.spec.json\n", s.host.Name(), host.Agent, s.spec.Role)
		text, err := json.MarshalIndent(s.spec.Without(), "", "  ")
		if err != nil {
			text = []byte(err.Error())
		}
		files = append(files, file(string(s.spec.Role)+".spec.json", append(text, '\n')), file(string(s.spec.Role)+".events.ndjson", s.out.Bytes()))
	}
	return append(files, file("commands.txt", commands.Bytes()))
}

// watch is how long a host's machine has to be watched still.
func (t *Tool) watch(h host.Host) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.idle[h.Name()]; known {
		return 0
	}
	return idleTime
}

// learn keeps the idle levels that were seen; recall puts those of earlier runs into the reports.
func (t *Tool) learn(p host.Pair, client, server *netload.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for h, r := range map[host.Host]*netload.Report{p.Client: client, p.Server: server} {
		if r.Cost.IdleSeen {
			t.idle[h.Name()] = r.Cost.Idle
		}
	}
}

func (t *Tool) recall(p host.Pair, client, server *netload.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	client.Cost.Idle = t.idle[p.Client.Name()]
	server.Cost.Idle = t.idle[p.Server.Name()]
}
