// Package trial runs the trials of a dynamics case on the agent: it creates pods that answer probes, with their
// Services and policies, sends probes, makes the change through the API server, waits until the probes show it, and
// removes everything. Package prober turns its results into a measurement.
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

// port is the port on which pods answer probes.
const port = 7000

// A run is one run of a case on a cluster.
type run struct {
	dynamics.Run
	*apiserver.Client
	id     string
	token  probe.Token
	state  *state
	made   uint64 // objects created so far; the number of the next one
	result Result
}

// changes holds the function that runs the trials of each change.
var changes = map[dynamics.Change]func(*run, context.Context) error{
	dynamics.PolicyDeny:         (*run).runPolicies,
	dynamics.PolicyAllow:        (*run).runPolicies,
	dynamics.PolicyEstablished:  (*run).runPolicies,
	dynamics.PolicyFirst:        (*run).runPolicyFirst,
	dynamics.FirstPacket:        (*run).runFirstPacket,
	dynamics.EndpointReady:      (*run).runEndpointReady,
	dynamics.EndpointGone:       (*run).runEndpointGone,
	dynamics.ServiceProgramming: (*run).runServiceProgramming,
	dynamics.Rollout:            (*run).runRollout,
}

// Do runs the trials of a case, and removes everything that it created, also when ctx ends.
func Do(ctx context.Context, c dynamics.Run) (_ Result, err error) {
	do := changes[c.Workload.Change]
	switch {
	case do == nil:
		return Result{}, fmt.Errorf("this agent knows no change %q", c.Workload.Change)
	case c.Endpoint.Namespace == "":
		return Result{}, fmt.Errorf("%w: no namespace is given for the run's objects", apiserver.ErrEndpoint)
	}
	client, err := apiserver.Connect(c.Endpoint)
	if err != nil {
		return Result{}, err
	}
	r := &run{Run: c, Client: client, id: fmt.Sprintf("%08x", rand.Uint32()), token: probe.NewToken(),
		result: Result{Facts: map[string]string{}}}
	defer func() { err = errors.Join(err, r.removeAll(ctx)) }()
	r.state, err = watchState(ctx, r)
	if err != nil {
		return Result{}, err
	}
	defer r.state.close()
	if err := do(r, ctx); err != nil {
		return Result{}, errors.Join(err, r.state.err())
	}
	return r.result, r.state.err()
}

// objects describes the run's objects of a resource.
func (r *run) objects(resource string) apiserver.RunObjects {
	return apiserver.RunObjects{
		Kind: apiserver.KindOf(resource), Run: r.id, Namespace: r.Endpoint.Namespace, Prefix: r.Client.Prefix,
		Own: r.Endpoint.Labels, Pod: r.Endpoint.Pod, PodLabels: r.Endpoint.PodLabels,
		PodAnnotations: r.Endpoint.PodAnnotations, Image: r.Endpoint.Image, PullPolicy: r.Endpoint.PullPolicy,
	}
}

// removeTime is how long the removal of a run's objects may take.
const removeTime = 40 * time.Second

// removeAll removes the objects of the run, even if ctx has ended. Pods are last, because a Deployment would replace
// them.
func (r *run) removeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	var errs []error
	for _, resource := range append(resources[r.Workload.Change], "pod") {
		if _, err := r.Remove(ctx, r.objects(resource)); err != nil {
			errs = append(errs, fmt.Errorf("remove what the run made: %ss: %w", resource, err))
		}
	}
	return errors.Join(errs...)
}

// resources lists what each change creates besides pods.
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

// ownAddress returns the address from which this pod reaches the API server.
func (r *run) ownAddress() (netip.Addr, error) {
	conn, err := net.Dial("udp", r.Server.Addresses[0])
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the address of this pod: %w", err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// create creates an object of a resource, and returns its number and the object as the API server stores it.
func (r *run) create(ctx context.Context, resource string, spec map[string]any) (n uint64, made []byte, err error) {
	n = r.made
	r.made++
	o := r.objects(resource)
	made, err = r.DoWithRetry(ctx, http.MethodPost, o.All(), o.Object(n, spec))
	if err != nil {
		return n, nil, fmt.Errorf("make a %s: %w", resource, err)
	}
	return n, made, nil
}

// remove deletes an object and does not wait until it is gone; pods have some seconds to end.
func (r *run) remove(ctx context.Context, resource string, n uint64) error {
	if _, err := r.Do(ctx, http.MethodDelete, r.objects(resource).Path(n), "", nil); err != nil {
		return fmt.Errorf("remove a %s: %w", resource, err)
	}
	return nil
}

// startProbes starts to send probes to an address, for at most [maxProbeTime].
func (r *run) startProbes(ctx context.Context, to netip.AddrPort) (*probe.Prober, error) {
	return probe.Start(ctx, probe.Config{To: to, Token: r.token, Interval: r.Workload.Interval, MaxDuration: maxProbeTime})
}

// maxProbeTime is how long a prober may send. It is enough for a case that keeps its prober for all trials, unless many
// of them time out.
const maxProbeTime = 5 * time.Minute

const (
	pollInterval = 5 * time.Millisecond
	silenceTime  = 500 * time.Millisecond // time without answers after which traffic counts as blocked
)

// poll waits until done returns true, at most for limit. It reports whether done did.
func poll(ctx context.Context, limit time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); ctx.Err() == nil && time.Now().Before(end); time.Sleep(pollInterval) {
		if done() {
			return true
		}
	}
	return false
}

// answeringTime is how long probes of all kinds must be answered before a trial begins.
const answeringTime = 300 * time.Millisecond

// awaitAnswers waits until all kinds of probes have been answered for [answeringTime]; what names their destination in
// the error.
func (r *run) awaitAnswers(ctx context.Context, p *probe.Prober, what string) error {
	var answering int64 // time since which all kinds are answered; 0: not all are
	ok := poll(ctx, dynamics.TrialTimeout, func() bool {
		now := p.Now()
		for _, kind := range probe.Kinds() {
			if p.Last(kind) < now-int64(20*time.Millisecond)-3*int64(r.Workload.Interval) {
				answering = 0
				return false
			}
		}
		if answering == 0 {
			answering = now
		}
		return now-answering >= int64(answeringTime)
	})
	if !ok {
		return errors.Join(context.Cause(ctx), fmt.Errorf("%s does not answer probes of all kinds within %v", what,
			dynamics.TrialTimeout))
	}
	return nil
}

// awaitAnswer waits for the first answer after a time and returns its time, or 0 if none comes within limit.
func awaitAnswer(ctx context.Context, p *probe.Prober, kind probe.Kind, after int64, limit time.Duration) (at int64) {
	poll(ctx, limit, func() bool {
		at = p.First(kind, after)
		return at != 0
	})
	return at
}

// awaitSilence waits until no answer has come for [silenceTime], and returns the time of the last one, or after if none
// came later. It returns 0 if answers do not stop within limit.
func awaitSilence(ctx context.Context, p *probe.Prober, kind probe.Kind, after int64, limit time.Duration) (at int64) {
	if !poll(ctx, limit, func() bool {
		now := p.Now()
		at = max(after, p.Last(kind))
		return now-at >= int64(silenceTime)
	}) {
		return 0
	}
	return at
}

// lossTimeout is the time, ns, after which a probe without an answer counts as lost. The probes of the last lossTimeout
// of a trial are not evaluated.
const lossTimeout = int64(200 * time.Millisecond)

// addTrial adds a trial that began at request, on the prober's clock, and ends now.
func (r *run) addTrial(t Trial, p *probe.Prober, request int64) {
	end := max(p.Now()-lossTimeout, request+1)
	var traces []probe.Trace
	for _, kind := range probe.Kinds() {
		traces = append(traces, p.Trace(kind, request-keptBefore))
	}
	t.setLoss(traces, request, end)
	if len(r.result.Trials) == 0 {
		t.setTraces(traces, request, end)
	}
	r.result.Trials = append(r.result.Trials, t)
}
