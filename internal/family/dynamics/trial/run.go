// Package trial carries changes out on the agent, one trial after another: it makes pods that answer probes, and what
// they are behind, sends probes, makes the change by the API server, waits until probes show it and removes everything
// again. It stands between the agent and the prober.
package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/load/probe"
)

// port is where pods answer probes.
const port = 7000

// A run is a case on a cluster.
type run struct {
	dynamics.Run
	*apiserver.Client
	id     string
	token  probe.Token
	state  *state
	made   uint64 // objects so far, which number them
	result Result
}

// changes are what each change does.
var changes = map[dynamics.Change]func(*run, context.Context) error{
	dynamics.PolicyDeny:         (*run).policies,
	dynamics.PolicyAllow:        (*run).policies,
	dynamics.PolicyEstablished:  (*run).policies,
	dynamics.PolicyFirst:        (*run).policyFirst,
	dynamics.FirstPacket:        (*run).firstPacket,
	dynamics.EndpointReady:      (*run).endpointReady,
	dynamics.EndpointGone:       (*run).endpointGone,
	dynamics.ServiceProgramming: (*run).serviceProgramming,
	dynamics.Rollout:            (*run).rollout,
}

// Do carries out a case, and removes everything that it made, also when ctx ends.
func Do(ctx context.Context, c dynamics.Run) (_ Result, err error) {
	do := changes[c.Workload.Change]
	switch {
	case do == nil:
		return Result{}, fmt.Errorf("this agent knows no change %q", c.Workload.Change)
	case c.Endpoint.Namespace == "":
		return Result{}, fmt.Errorf("%w: no namespace is given for the run's objects", apiserver.ErrEndpoint)
	}
	way, err := apiserver.Connect(c.Endpoint)
	if err != nil {
		return Result{}, err
	}
	r := &run{Run: c, Client: way, id: fmt.Sprintf("%08x", rand.Uint32()), token: probe.NewToken(),
		result: Result{Facts: map[string]string{}}}
	defer func() { err = errors.Join(err, r.clean(ctx)) }()
	r.state, err = watchState(ctx, r)
	if err != nil {
		return Result{}, err
	}
	defer r.state.close()
	if err := do(r, ctx); err != nil {
		return Result{}, errors.Join(err, r.state.failed())
	}
	return r.result, r.state.failed()
}

// inventory is the run's objects of a resource.
func (r *run) inventory(resource string) apiserver.Inventory {
	return apiserver.Inventory{
		Kind: apiserver.KindOf(resource), Run: r.id, Namespace: r.Endpoint.Namespace, Prefix: r.Client.Prefix,
		Own: r.Endpoint.Labels, Pod: r.Endpoint.Pod, PodLabels: r.Endpoint.PodLabels,
		PodAnnotations: r.Endpoint.PodAnnotations, Image: r.Endpoint.Image, PullPolicy: r.Endpoint.PullPolicy,
	}
}

// cleanTime is how long what a run made may take to go.
const cleanTime = 40 * time.Second

// clean removes what the run has made, whatever became of ctx: first what makes other things.
func (r *run) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	var errs []error
	for _, resource := range append(resources[r.Workload.Change], "pod") {
		if _, err := r.Remove(ctx, r.inventory(resource)); err != nil {
			errs = append(errs, fmt.Errorf("remove what the run made: %ss: %w", resource, err))
		}
	}
	return errors.Join(errs...)
}

// resources are what each change makes besides pods.
var resources = map[dynamics.Change][]string{
	dynamics.PolicyDeny:         {"networkpolicy"},
	dynamics.PolicyAllow:        {"networkpolicy"},
	dynamics.PolicyEstablished:  {"networkpolicy"},
	dynamics.PolicyFirst:        {"networkpolicy"},
	dynamics.EndpointReady:      {"service"},
	dynamics.EndpointGone:       {"service"},
	dynamics.ServiceProgramming: {"service"},
	dynamics.Rollout:            {"deployment", "service"},
}

// own is this pod's address, by which it reaches the API server.
func (r *run) own() (netip.Addr, error) {
	conn, err := net.Dial("udp", r.Server.Addresses[0])
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the address of this pod: %w", err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// post makes an object of a resource, and returns its number and how the API server has it.
func (r *run) post(ctx context.Context, resource string, spec map[string]any) (n uint64, made []byte, err error) {
	n = r.made
	r.made++
	i := r.inventory(resource)
	made, err = r.DoWithRetry(ctx, http.MethodPost, i.All(), i.Object(n, spec))
	if err != nil {
		return n, nil, fmt.Errorf("make a %s: %w", resource, err)
	}
	return n, made, nil
}

// del has an object go. Pods may have some seconds for that.
func (r *run) del(ctx context.Context, resource string, n uint64) error {
	if _, err := r.Do(ctx, http.MethodDelete, r.inventory(resource).Path(n), "", nil); err != nil {
		return fmt.Errorf("remove a %s: %w", resource, err)
	}
	return nil
}

// probe starts probes to an address, for as long as a trial may last.
func (r *run) probe(ctx context.Context, to netip.AddrPort) (*probe.Prober, error) {
	return probe.Start(ctx, probe.Config{To: to, Token: r.token, Interval: r.Workload.Interval, Most: mostProbes})
}

// mostProbes is how long a prober sends: all trials of one that stays.
const mostProbes = 5 * time.Minute

// How often it is looked whether something has happened, and how long nothing has to come until nothing comes.
const (
	look    = 5 * time.Millisecond
	silence = 500 * time.Millisecond
)

// until waits until something is so, at most for some time; false if it never was.
func until(ctx context.Context, most time.Duration, so func() bool) bool {
	for end := time.Now().Add(most); ctx.Err() == nil && time.Now().Before(end); time.Sleep(look) {
		if so() {
			return true
		}
	}
	return false
}

// settled is how long probes of all kinds have to be answered before a trial begins.
const settled = 300 * time.Millisecond

// settle waits until all kinds of probes have been answered for some time.
func (r *run) settle(ctx context.Context, p *probe.Prober, what string) error {
	var well int64
	ok := until(ctx, dynamics.Patience, func() bool {
		now := p.Now()
		for _, kind := range probe.Kinds() {
			if p.Last(kind) < now-int64(20*time.Millisecond)-3*int64(r.Workload.Interval) {
				well = 0
				return false
			}
		}
		if well == 0 {
			well = now
		}
		return now-well >= int64(settled)
	})
	if !ok {
		return errors.Join(context.Cause(ctx), fmt.Errorf("%s does not answer probes of all kinds within %v", what,
			dynamics.Patience))
	}
	return nil
}

// opened waits for the first answer that comes after a time; 0 if none does in time.
func opened(ctx context.Context, p *probe.Prober, kind probe.Kind, after int64, most time.Duration) (at int64) {
	until(ctx, most, func() bool {
		at = p.First(kind, after)
		return at != 0
	})
	return at
}

// shut waits until no answer has come for some time, and tells when the last one came: the time itself if none came
// after it; 0 if they did not stop in time.
func shut(ctx context.Context, p *probe.Prober, kind probe.Kind, after int64, most time.Duration) (at int64) {
	if !until(ctx, most, func() bool {
		now := p.Now()
		at = max(after, p.Last(kind))
		return now-at >= int64(silence)
	}) {
		return 0
	}
	return at
}

// onTheWay is how long an answer may take until its probe is taken for lost: what was sent later is not looked at.
const onTheWay = int64(200 * time.Millisecond)

// add adds a trial that was asked for at a time on the prober's clock, and is over now.
func (r *run) add(t Trial, p *probe.Prober, request int64) {
	end := max(p.Now()-onTheWay, request+1)
	var traces []probe.Trace
	for _, kind := range probe.Kinds() {
		traces = append(traces, p.Trace(kind, request-keptBefore))
	}
	t.seen(traces, request, end)
	if len(r.result.Trials) == 0 {
		t.keep(traces, request, end)
	}
	r.result.Trials = append(r.result.Trials, t)
}
