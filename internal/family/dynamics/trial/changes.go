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

// afterChange is how long a trial goes on after the change showed, to record what follows it.
const afterChange = 300 * time.Millisecond

// cutTimeout is how long a trial waits for a policy to cut an open connection. A datapath that cuts connections does so
// at once.
const cutTimeout = 5 * time.Second

// since returns the time from request to at, at least 1 ns; 0 if at is 0, which means never. All times are in ns.
func since(request, at int64) int64 {
	if at == 0 {
		return 0
	}
	return max(1, at-request)
}

// runPolicies forbids traffic to a pod and allows it again, and records the change that the case is about.
func (r *run) runPolicies(ctx context.Context) error {
	s, err := r.startServer(ctx, false)
	if err != nil {
		return err
	}
	p, err := r.startProbes(ctx, s.at())
	if err != nil {
		return err
	}
	defer p.Stop(0)
	for range r.Workload.Trials {
		if err := r.awaitAnswers(ctx, p, "a pod without a policy"); err != nil {
			return err
		}
		n, err := r.addPolicy(ctx, p)
		if err != nil {
			return err
		}
		if err := r.removePolicy(ctx, p, n); err != nil {
			return err
		}
		if r.withoutEffect() {
			break
		}
	}
	return context.Cause(ctx)
}

// withoutEffect reports whether the last policy of a policy-deny case had no effect. More trials would take long and
// show nothing else.
func (r *run) withoutEffect() bool {
	if len(r.result.Trials) == 0 || r.Workload.Change != dynamics.PolicyDeny {
		return false
	}
	_, shown := r.result.Trials[len(r.result.Trials)-1].Shown[probe.TCPNew]
	return !shown
}

// addPolicy creates a policy that forbids traffic, records when it shows, and returns its number.
func (r *run) addPolicy(ctx context.Context, p *probe.Prober) (n uint64, err error) {
	request := p.Now()
	n, _, err = r.create(ctx, "networkpolicy", r.policySpec(false))
	if err != nil {
		return 0, err
	}
	t := Trial{Shown: map[probe.Kind]int64{}}
	limit := map[probe.Kind]time.Duration{probe.TCPNew: dynamics.TrialTimeout}
	if r.Workload.Change == dynamics.PolicyEstablished {
		limit[probe.TCP] = cutTimeout
	}
	for _, kind := range []probe.Kind{probe.TCPNew, probe.TCP, probe.UDP} {
		if at := awaitSilence(ctx, p, kind, request, max(limit[kind], 2*pollInterval)); at != 0 {
			t.Shown[kind] = since(request, at)
		}
	}
	if added, _ := r.state.objectTimes(r.objects("networkpolicy").ObjectName(n)); !added.IsZero() {
		t.Announced = since(request, p.At(added))
	}
	if r.Workload.Change != dynamics.PolicyAllow {
		r.addTrial(t, p, request)
	}
	return n, context.Cause(ctx)
}

// removePolicy removes policy n and records when traffic passes again.
func (r *run) removePolicy(ctx context.Context, p *probe.Prober, n uint64) error {
	request := p.Now()
	if err := r.remove(ctx, "networkpolicy", n); err != nil {
		return err
	}
	t := Trial{Shown: map[probe.Kind]int64{}}
	if at := awaitAnswer(ctx, p, probe.TCPNew, request, dynamics.TrialTimeout); at != 0 {
		t.Shown[probe.TCPNew] = since(request, at)
	}
	time.Sleep(afterChange)
	for _, kind := range []probe.Kind{probe.UDP, probe.TCP} {
		if at := p.First(kind, request); at != 0 {
			t.Shown[kind] = since(request, at)
		}
	}
	if _, removed := r.state.objectTimes(r.objects("networkpolicy").ObjectName(n)); !removed.IsZero() {
		t.Announced = since(request, p.At(removed))
	}
	if r.Workload.Change == dynamics.PolicyAllow {
		r.addTrial(t, p, request)
	}
	return context.Cause(ctx)
}

// leakTime is how long probes go to a pod under a policy after the pod runs.
const leakTime = 2 * time.Second

// runPolicyFirst starts pods under a policy that forbids all their traffic, and records whether any passes.
func (r *run) runPolicyFirst(ctx context.Context) error {
	if _, _, err := r.create(ctx, "networkpolicy", r.policySpec(true)); err != nil {
		return err
	}
	for range r.Workload.Trials {
		if err := r.withNewPod(ctx, true, func(t *Trial, p *probe.Prober, from *probe.Listener, request int64) {
			time.Sleep(leakTime)
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
			t.Shown = map[probe.Kind]int64{probe.TCPNew: 1} // not censored: the trial lasted its whole time
		}); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// runFirstPacket starts pods and records when each answers and when it can send.
func (r *run) runFirstPacket(ctx context.Context) error {
	for range r.Workload.Trials {
		if err := r.withNewPod(ctx, false, func(t *Trial, p *probe.Prober, from *probe.Listener, request int64) {
			t.Shown = map[probe.Kind]int64{}
			for _, kind := range []probe.Kind{probe.TCPNew, probe.TCP, probe.UDP} {
				if at := awaitAnswer(ctx, p, kind, request, dynamics.TrialTimeout); at != 0 {
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

// withNewPod starts a pod that announces itself to a listener, probes it as soon as it has an address, and calls record
// when it runs. With silent the listener does not answer, so that announcements continue. The prober's clock starts
// after the request, so that the request's time is negative.
func (r *run) withNewPod(ctx context.Context, silent bool,
	record func(t *Trial, p *probe.Prober, from *probe.Listener, request int64)) error {
	own, err := r.ownAddress()
	if err != nil {
		return err
	}
	heard, err := probe.Listen(ctx, own, r.token.Hash(), silent)
	if err != nil {
		return err
	}
	defer heard.Close()
	began := time.Now()
	n, _, err := r.create(ctx, "pod", map[string]any{"spec": r.serverSpec(heard.Addr())})
	if err != nil {
		return err
	}
	name := r.objects("pod").ObjectName(n)
	if !poll(ctx, startTime, func() bool { return r.state.pod(name).ip != "" }) {
		return fmt.Errorf("pod %s has no address within %v: %s", name, startTime, r.waitReason(r.state.pod(name)))
	}
	known := r.state.pod(name)
	ip, err := netip.ParseAddr(known.ip)
	if err != nil {
		return err
	}
	p, err := r.startProbes(ctx, netip.AddrPortFrom(ip, port))
	if err != nil {
		return err
	}
	defer p.Stop(0)
	if _, err := r.awaitServer(ctx, n, false); err != nil {
		return err
	}
	request := p.At(began)
	t := Trial{Announced: since(request, p.At(known.addressed))}
	record(&t, p, heard, request)
	r.addTrial(t, p, request)
	return r.remove(ctx, "pod", n)
}

// A service is a Service of the run: its object number and its address.
type service struct {
	n  uint64
	at netip.AddrPort
}

// createService creates a Service for the pods of the run.
func (r *run) createService(ctx context.Context) (service, error) {
	n, made, err := r.create(ctx, "service", r.serviceSpec())
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

// runServiceProgramming creates a Service for a ready pod, in each trial.
func (r *run) runServiceProgramming(ctx context.Context) error {
	pod, err := r.startServer(ctx, false)
	if err != nil {
		return err
	}
	for range r.Workload.Trials {
		began := time.Now()
		s, err := r.createService(ctx)
		if err != nil {
			return err
		}
		p, err := r.startProbes(ctx, s.at)
		if err != nil {
			return err
		}
		request := p.At(began)
		t := r.awaitService(ctx, p, request, pod.ip)
		r.addTrial(t, p, request)
		p.Stop(0)
		if err := r.remove(ctx, "service", s.n); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// awaitService records when a Service begins to answer, and when its EndpointSlice had the pod's address.
func (r *run) awaitService(ctx context.Context, p *probe.Prober, request int64, ip netip.Addr) Trial {
	t := Trial{Shown: map[probe.Kind]int64{}}
	for _, kind := range []probe.Kind{probe.TCPNew, probe.UDP, probe.TCP} {
		if at := awaitAnswer(ctx, p, kind, request, dynamics.TrialTimeout); at != 0 {
			t.Shown[kind] = since(request, at)
		}
	}
	if ready, changed := r.state.endpoints(); slices.Contains(ready, ip.String()) {
		t.Announced = since(request, p.At(changed))
	}
	time.Sleep(afterChange)
	return t
}

// runEndpointReady makes the only pod behind a Service ready and then not ready again, in each trial.
func (r *run) runEndpointReady(ctx context.Context) error {
	pod, err := r.startServer(ctx, true)
	if err != nil {
		return err
	}
	s, err := r.createService(ctx)
	if err != nil {
		return err
	}
	p, err := r.startProbes(ctx, s.at)
	if err != nil {
		return err
	}
	defer p.Stop(0)
	time.Sleep(silenceTime)
	for range r.Workload.Trials {
		request := p.Now()
		if err := r.setReady(ctx, pod, true); err != nil {
			return err
		}
		r.addTrial(r.awaitService(ctx, p, request, pod.ip), p, request)
		if err := r.setReady(ctx, pod, false); err != nil {
			return err
		}
		if awaitSilence(ctx, p, probe.TCPNew, p.Now(), dynamics.TrialTimeout) == 0 {
			return fmt.Errorf("the Service still answers %v after its only pod is not ready any more", dynamics.TrialTimeout)
		}
	}
	return context.Cause(ctx)
}

// setReady sets the readiness gate of a pod.
func (r *run) setReady(ctx context.Context, s server, ready bool) error {
	status := map[bool]string{true: "True", false: "False"}[ready]
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q}]}}`, gate, status)
	_, err := r.Do(ctx, http.MethodPatch, r.objects("pod").Path(s.n)+"/status", "application/strategic-merge-patch+json",
		patch)
	if err != nil {
		return fmt.Errorf("say that a pod is ready: %w", err)
	}
	return nil
}

const (
	programmingTime = 2 * time.Second // from the announcement of endpoints until the datapath should have them
	minLossTime     = 3 * time.Second // how long a trial records at least after a pod is removed
	noLossTime      = time.Second     // a loss is over if all probes of this time were answered
)

// runEndpointGone removes one of two pods behind a Service, in each trial.
func (r *run) runEndpointGone(ctx context.Context) error {
	stays, err := r.startServer(ctx, false)
	if err != nil {
		return err
	}
	s, err := r.createService(ctx)
	if err != nil {
		return err
	}
	for range r.Workload.Trials {
		goes, err := r.startServer(ctx, false)
		if err != nil {
			return err
		}
		if err := r.awaitEndpoints(ctx, stays, goes); err != nil {
			return err
		}
		p, err := r.startProbes(ctx, s.at)
		if err != nil {
			return err
		}
		if err = r.awaitAnswers(ctx, p, "the Service"); err == nil {
			err = r.removeServer(ctx, p, goes)
		}
		p.Stop(0)
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// awaitEndpoints waits until the Service has both pods as endpoints, and then [programmingTime] for the datapath.
func (r *run) awaitEndpoints(ctx context.Context, pods ...server) error {
	if !poll(ctx, dynamics.TrialTimeout, func() bool {
		ready, changed := r.state.endpoints()
		for _, p := range pods {
			if !slices.Contains(ready, p.ip.String()) {
				return false
			}
		}
		return time.Since(changed) >= programmingTime
	}) {
		return fmt.Errorf("the Service does not have both of its pods within %v", dynamics.TrialTimeout)
	}
	return nil
}

// removeServer removes a pod, or ends its process without notice, and records the loss until it is over.
func (r *run) removeServer(ctx context.Context, p *probe.Prober, goes server) error {
	request := p.Now()
	var err error
	if r.Workload.Abrupt {
		err = probe.End(ctx, goes.at(), r.token)
	} else {
		err = r.remove(ctx, "pod", goes.n)
	}
	if err != nil {
		return err
	}
	t := Trial{}
	over := r.awaitNoLoss(ctx, p, request, minLossTime)
	if ready, changed := r.state.endpoints(); !slices.Contains(ready, goes.ip.String()) {
		t.Announced = since(request, p.At(changed))
	}
	if over {
		t.Shown = map[probe.Kind]int64{probe.TCPNew: since(request, p.Now())} // not censored: the loss ended
	}
	r.addTrial(t, p, request)
	return context.Cause(ctx)
}

// awaitNoLoss waits until the time least has passed since the request, and all new connections of the last [noLossTime]
// were answered. It reports whether that happened within [dynamics.TrialTimeout].
func (r *run) awaitNoLoss(ctx context.Context, p *probe.Prober, request int64, least time.Duration) bool {
	return poll(ctx, dynamics.TrialTimeout, func() bool {
		now := p.Now()
		from := now - int64(noLossTime) - lossTimeout
		l := p.Trace(probe.TCPNew, from).Loss(from, now-lossTimeout)
		return now-request >= int64(least) && l.Sent > 0 && l.Lost == 0
	})
}

// runRollout restarts the pods of a Deployment with a rolling update, in each trial.
func (r *run) runRollout(ctx context.Context) error {
	n, _, err := r.create(ctx, "deployment", r.deploymentSpec())
	if err != nil {
		return err
	}
	if err := r.awaitRollout(ctx, 1); err != nil {
		return err
	}
	s, err := r.createService(ctx)
	if err != nil {
		return err
	}
	p, err := r.startProbes(ctx, s.at)
	if err != nil {
		return err
	}
	defer p.Stop(0)
	for trial := range r.Workload.Trials {
		if err := r.awaitAnswers(ctx, p, "the Service"); err != nil {
			return err
		}
		request := p.Now()
		patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{"knotmeter.dev/n":"%d"}}}}}`, trial)
		if _, err := r.Do(ctx, http.MethodPatch, r.objects("deployment").Path(n), "application/merge-patch+json",
			patch); err != nil {
			return fmt.Errorf("roll out a Deployment: %w", err)
		}
		if err := r.awaitRollout(ctx, trial+2); err != nil {
			return err
		}
		t := Trial{Shown: map[probe.Kind]int64{probe.TCPNew: since(request, p.Now())}}
		if !r.awaitNoLoss(ctx, p, request, lingerTime) {
			t.Shown = nil
		}
		r.addTrial(t, p, request)
	}
	return context.Cause(ctx)
}

// awaitRollout waits until all pods of the Deployment are available and belong to the generation.
func (r *run) awaitRollout(ctx context.Context, generation int) error {
	if !poll(ctx, startTime, func() bool {
		got := r.state.rolloutState()
		return got.ObservedGeneration >= generation && got.Replicas == replicas && got.UpdatedReplicas == replicas &&
			got.AvailableReplicas == replicas
	}) {
		return fmt.Errorf("the Deployment is not rolled out within %v: %+v", startTime, r.state.rolloutState())
	}
	return nil
}
