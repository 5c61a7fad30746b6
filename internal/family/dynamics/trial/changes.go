package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/load/probe"
)

// afterwards is how long is looked on after a change showed, so that what follows at once is seen too.
const afterwards = 300 * time.Millisecond

// established is how long an open connection may live on under a policy: what cuts connections does so at once.
const established = 5 * time.Second

// since is a time after a request, ns; 0 if there is none, and at least 1.
func since(request, at int64) int64 {
	if at == 0 {
		return 0
	}
	return max(1, at-request)
}

// policies forbids traffic to a pod and allows it again, in each trial, and keeps the one that the case is about.
func (r *run) policies(ctx context.Context) error {
	s, err := r.serve(ctx, false)
	if err != nil {
		return err
	}
	p, err := r.probe(ctx, s.at())
	if err != nil {
		return err
	}
	defer p.Stop(0)
	for range r.Workload.Trials {
		if err := r.settle(ctx, p, "a pod without a policy"); err != nil {
			return err
		}
		n, err := r.deny(ctx, p)
		if err != nil {
			return err
		}
		if err := r.allow(ctx, p, n); err != nil {
			return err
		}
		if r.hopeless() {
			break
		}
	}
	return context.Cause(ctx)
}

// hopeless says that a trial was in vain whose policy has no effect at all: others would be too, and take long.
func (r *run) hopeless() bool {
	if len(r.result.Trials) == 0 || r.Workload.Change != dynamics.PolicyDeny {
		return false
	}
	_, shown := r.result.Trials[len(r.result.Trials)-1].Shown[probe.New]
	return !shown
}

// deny makes a policy.
func (r *run) deny(ctx context.Context, p *probe.Prober) (n uint64, err error) {
	request := p.Now()
	n, _, err = r.post(ctx, "networkpolicy", r.policySpec(false))
	if err != nil {
		return 0, err
	}
	t := Trial{Shown: map[probe.Kind]int64{}}
	most := map[probe.Kind]time.Duration{probe.New: dynamics.Patience}
	if r.Workload.Change == dynamics.PolicyEstablished {
		most[probe.TCP] = established
	}
	for _, kind := range []probe.Kind{probe.New, probe.TCP, probe.UDP} {
		if at := shut(ctx, p, kind, request, max(most[kind], 2*look)); at != 0 {
			t.Shown[kind] = since(request, at)
		}
	}
	if added, _ := r.state.told(r.inventory("networkpolicy").ObjectName(n)); !added.IsZero() {
		t.Announced = since(request, p.At(added))
	}
	if r.Workload.Change != dynamics.PolicyAllow {
		r.add(t, p, request)
	}
	return n, context.Cause(ctx)
}

// allow removes the policy.
func (r *run) allow(ctx context.Context, p *probe.Prober, n uint64) error {
	request := p.Now()
	if err := r.del(ctx, "networkpolicy", n); err != nil {
		return err
	}
	t := Trial{Shown: map[probe.Kind]int64{}}
	if at := opened(ctx, p, probe.New, request, dynamics.Patience); at != 0 {
		t.Shown[probe.New] = since(request, at)
	}
	time.Sleep(afterwards)
	for _, kind := range []probe.Kind{probe.UDP, probe.TCP} {
		if at := p.First(kind, request); at != 0 {
			t.Shown[kind] = since(request, at)
		}
	}
	if _, removed := r.state.told(r.inventory("networkpolicy").ObjectName(n)); !removed.IsZero() {
		t.Announced = since(request, p.At(removed))
	}
	if r.Workload.Change == dynamics.PolicyAllow {
		r.add(t, p, request)
	}
	return context.Cause(ctx)
}

// beginning is how long a pod that must not be reached is tried after it runs.
const beginning = 2 * time.Second

// policyFirst starts pods that a policy forbids all traffic, and hears whether any of it passes.
func (r *run) policyFirst(ctx context.Context) error {
	if _, _, err := r.post(ctx, "networkpolicy", r.policySpec(true)); err != nil {
		return err
	}
	for range r.Workload.Trials {
		if err := r.newborn(ctx, true, func(t *Trial, p *probe.Prober, from *probe.Listener, request int64) {
			time.Sleep(beginning)
			passed := []int64{}
			for _, kind := range probe.Kinds() {
				trace := p.Trace(kind, 0)
				passed = append(passed, slices.DeleteFunc(trace.Answered, func(at int64) bool { return at == 0 })...)
			}
			for _, at := range from.Heard() {
				passed = append(passed, p.At(at))
			}
			if t.Leaked = len(passed) > 0; t.Leaked {
				t.Leak = slices.Max(passed) - slices.Min(passed)
			}
			t.Shown = map[probe.Kind]int64{probe.New: 1} // it is seen to the end
		}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// firstPacket starts pods, and sees when each answers and can send.
func (r *run) firstPacket(ctx context.Context) error {
	for range r.Workload.Trials {
		if err := r.newborn(ctx, false, func(t *Trial, p *probe.Prober, from *probe.Listener, request int64) {
			t.Shown = map[probe.Kind]int64{}
			for _, kind := range []probe.Kind{probe.New, probe.TCP, probe.UDP} {
				if at := opened(ctx, p, kind, request, dynamics.Patience); at != 0 {
					t.Shown[kind] = since(request, at)
				}
			}
			if heard := from.Heard(); len(heard) > 0 {
				t.CanSend = since(request, p.At(heard[0]))
			}
		}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// newborn starts a pod that announces itself, probes it as soon as it has an address, and has what became of it seen
// when it runs. The prober's clock begins after the request, which has a negative time on it.
func (r *run) newborn(ctx context.Context, silent bool,
	see func(t *Trial, p *probe.Prober, from *probe.Listener, request int64)) error {
	own, err := r.own()
	if err != nil {
		return err
	}
	heard, err := probe.Listen(ctx, own, r.token.Lock(), silent)
	if err != nil {
		return err
	}
	defer heard.Close()
	began := time.Now()
	n, _, err := r.post(ctx, "pod", map[string]any{"spec": r.serverSpec(heard.Addr())})
	if err != nil {
		return err
	}
	name := r.inventory("pod").ObjectName(n)
	if !until(ctx, startTime, func() bool { return r.state.pod(name).ip != "" }) {
		return fmt.Errorf("pod %s has no address within %v: %s", name, startTime, r.why(r.state.pod(name)))
	}
	known := r.state.pod(name)
	ip, err := netip.ParseAddr(known.ip)
	if err != nil {
		return err
	}
	p, err := r.probe(ctx, netip.AddrPortFrom(ip, port))
	if err != nil {
		return err
	}
	defer p.Stop(0)
	if _, err := r.started(ctx, n, false); err != nil {
		return err
	}
	request := p.At(began)
	t := Trial{Announced: since(request, p.At(known.addressed))}
	see(&t, p, heard, request)
	r.add(t, p, request)
	return r.del(ctx, "pod", n)
}

// A service is one with its address.
type service struct {
	n  uint64
	at netip.AddrPort
}

// expose makes a Service for the pods of the run.
func (r *run) expose(ctx context.Context) (service, error) {
	n, made, err := r.post(ctx, "service", r.serviceSpec())
	if err != nil {
		return service{}, err
	}
	var has struct{ Spec struct{ ClusterIP string } }
	if err := json.Unmarshal(made, &has); err != nil {
		return service{}, fmt.Errorf("the API server's Service: %w", err)
	}
	ip, err := netip.ParseAddr(has.Spec.ClusterIP)
	if err != nil {
		return service{}, fmt.Errorf("the Service has no address of the cluster: %w", err)
	}
	return service{n, netip.AddrPortFrom(ip, port)}, nil
}

// serviceProgramming makes a Service for a pod that is ready, in each trial.
func (r *run) serviceProgramming(ctx context.Context) error {
	pod, err := r.serve(ctx, false)
	if err != nil {
		return err
	}
	for range r.Workload.Trials {
		began := time.Now()
		s, err := r.expose(ctx)
		if err != nil {
			return err
		}
		p, err := r.probe(ctx, s.at)
		if err != nil {
			return err
		}
		request := p.At(began)
		t := r.comes(ctx, p, request, pod.ip)
		r.add(t, p, request)
		p.Stop(0)
		if err := r.del(ctx, "service", s.n); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// comes sees when a Service begins to answer, and when its EndpointSlice had the address.
func (r *run) comes(ctx context.Context, p *probe.Prober, request int64, ip netip.Addr) Trial {
	t := Trial{Shown: map[probe.Kind]int64{}}
	for _, kind := range []probe.Kind{probe.New, probe.UDP, probe.TCP} {
		if at := opened(ctx, p, kind, request, dynamics.Patience); at != 0 {
			t.Shown[kind] = since(request, at)
		}
	}
	if ready, changed := r.state.endpoints(); slices.Contains(ready, ip.String()) {
		t.Announced = since(request, p.At(changed))
	}
	time.Sleep(afterwards)
	return t
}

// endpointReady makes the only pod behind a Service ready, in each trial, and takes that back.
func (r *run) endpointReady(ctx context.Context) error {
	pod, err := r.serve(ctx, true)
	if err != nil {
		return err
	}
	s, err := r.expose(ctx)
	if err != nil {
		return err
	}
	p, err := r.probe(ctx, s.at)
	if err != nil {
		return err
	}
	defer p.Stop(0)
	time.Sleep(silence)
	for range r.Workload.Trials {
		request := p.Now()
		if err := r.open(ctx, pod, true); err != nil {
			return err
		}
		r.add(r.comes(ctx, p, request, pod.ip), p, request)
		if err := r.open(ctx, pod, false); err != nil {
			return err
		}
		if shut(ctx, p, probe.New, p.Now(), dynamics.Patience) == 0 {
			return fmt.Errorf("the Service still answers %v after its only pod is not ready any more", dynamics.Patience)
		}
	}
	return context.Cause(ctx)
}

// open sets the gate of a pod.
func (r *run) open(ctx context.Context, s server, ready bool) error {
	status := map[bool]string{true: "True", false: "False"}[ready]
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q}]}}`, gate, status)
	_, err := r.Do(ctx, http.MethodPatch, r.inventory("pod").Path(s.n)+"/status", "application/strategic-merge-patch+json",
		patch)
	if err != nil {
		return fmt.Errorf("say that a pod is ready: %w", err)
	}
	return nil
}

// How long a datapath has for what was announced before it is changed again, how long is looked on at least after
// something went, and how long all probes have to be answered until a loss is over.
const (
	programmed = 2 * time.Second
	atLeast    = 3 * time.Second
	calm       = time.Second
)

// endpointGone has one of two pods behind a Service go, in each trial.
func (r *run) endpointGone(ctx context.Context) error {
	stays, err := r.serve(ctx, false)
	if err != nil {
		return err
	}
	s, err := r.expose(ctx)
	if err != nil {
		return err
	}
	for range r.Workload.Trials {
		goes, err := r.serve(ctx, false)
		if err != nil {
			return err
		}
		if err := r.both(ctx, stays, goes); err != nil {
			return err
		}
		p, err := r.probe(ctx, s.at)
		if err != nil {
			return err
		}
		if err = r.settle(ctx, p, "the Service"); err == nil {
			err = r.leave(ctx, p, goes)
		}
		p.Stop(0)
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// both waits until the Service has both pods, and the datapath had time for them.
func (r *run) both(ctx context.Context, pods ...server) error {
	if !until(ctx, dynamics.Patience, func() bool {
		ready, changed := r.state.endpoints()
		for _, p := range pods {
			if !slices.Contains(ready, p.ip.String()) {
				return false
			}
		}
		return time.Since(changed) >= programmed
	}) {
		return fmt.Errorf("the Service does not have both of its pods within %v", dynamics.Patience)
	}
	return nil
}

// leave has a pod go, and looks on until nothing is lost any more.
func (r *run) leave(ctx context.Context, p *probe.Prober, goes server) error {
	request := p.Now()
	var err error
	if r.Workload.Abrupt {
		err = probe.End(ctx, goes.at(), r.token)
	} else {
		err = r.del(ctx, "pod", goes.n)
	}
	if err != nil {
		return err
	}
	t := Trial{}
	over := r.calms(ctx, p, request, atLeast)
	if ready, changed := r.state.endpoints(); !slices.Contains(ready, goes.ip.String()) {
		t.Announced = since(request, p.At(changed))
	}
	if over {
		t.Shown = map[probe.Kind]int64{probe.New: since(request, p.Now())} // it is seen to the end
	}
	r.add(t, p, request)
	return context.Cause(ctx)
}

// calms looks on for some time at least, and until all probes of new connections have been answered for a while.
func (r *run) calms(ctx context.Context, p *probe.Prober, request int64, least time.Duration) bool {
	return until(ctx, dynamics.Patience, func() bool {
		now := p.Now()
		from := now - int64(calm) - onTheWay
		l := p.Trace(probe.New, from).Loss(from, now-onTheWay)
		return now-request >= int64(least) && l.Sent > 0 && l.Lost == 0
	})
}

// rollout rolls a Deployment out anew, in each trial.
func (r *run) rollout(ctx context.Context) error {
	n, _, err := r.post(ctx, "deployment", r.deploymentSpec())
	if err != nil {
		return err
	}
	if err := r.rolledOut(ctx, 1); err != nil {
		return err
	}
	s, err := r.expose(ctx)
	if err != nil {
		return err
	}
	p, err := r.probe(ctx, s.at)
	if err != nil {
		return err
	}
	defer p.Stop(0)
	for trial := range r.Workload.Trials {
		if err := r.settle(ctx, p, "the Service"); err != nil {
			return err
		}
		request := p.Now()
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"knotmeter.dev/n":"%d"}}}}}`, trial)
		if _, err := r.Do(ctx, http.MethodPatch, r.inventory("deployment").Path(n), "application/merge-patch+json",
			patch); err != nil {
			return fmt.Errorf("roll out a Deployment: %w", err)
		}
		if err := r.rolledOut(ctx, trial+2); err != nil {
			return err
		}
		t := Trial{Shown: map[probe.Kind]int64{probe.New: since(request, p.Now())}}
		if !r.calms(ctx, p, request, lingers) {
			t.Shown = nil
		}
		r.add(t, p, request)
	}
	return context.Cause(ctx)
}

// rolledOut waits until all pods of the Deployment are those of a generation, and available.
func (r *run) rolledOut(ctx context.Context, generation int) error {
	if !until(ctx, startTime, func() bool {
		got := r.state.rolled()
		return got.ObservedGeneration >= generation && got.Replicas == replicas && got.UpdatedReplicas == replicas &&
			got.AvailableReplicas == replicas
	}) {
		return fmt.Errorf("the Deployment is not rolled out within %v: %+v", startTime, r.state.rolled())
	}
	return nil
}
