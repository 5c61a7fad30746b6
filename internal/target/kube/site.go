package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// A site is two pods and perhaps a Service, or one pod alone, from their making to their end.
type site struct {
	cluster  *connection.Cluster
	plan     manifest.Blueprint
	injector *injector
	pin      inspection.Pin  // of the experiment
	sent     [2]parcel       // to the client's pod and the server's, with inject=yes
	life     context.Context // ends with the site; no command outlives it
	end      context.CancelFunc
	pods     map[string]*corev1.Pod // as they were when both ran
	watch    *watching.PodWatch     // what becomes of them
	volume   *volumes.Volume        // nil where no storage is measured
	nodes    *watching.Period       // since the site was opened
	dial     netip.AddrPort
	listen   netip.AddrPort
	client   preflight.Report
	server   preflight.Report
	calls    int64 // to the API server, when the site was begun
	made     bool  // something of it was made, or may have been: not all was refused
}

// make makes what the blueprint says and checks it. After an error everything is removed again.
func (s *site) make(ctx context.Context) error {
	s.life, s.end = context.WithCancel(context.Background())
	s.calls = s.cluster.Calls()
	err := s.raise(ctx)
	if err == nil {
		return nil
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	return errors.Join(err, s.remove(cleanup))
}

// cleanupTime is how long the remains of something that failed may take to go.
const cleanupTime = 30 * time.Second

func (s *site) raise(ctx context.Context) error {
	if err := s.volume.Provision(ctx); err != nil {
		return err
	}
	service, err := s.create(ctx)
	if err != nil {
		return err
	}
	s.watch = watching.Pods(s.cluster.CoreV1().Pods(s.plan.Namespace), s.plan.Selector(), len(s.plan.Roles()))
	if s.pods, err = s.awaitPods(ctx); err != nil {
		return diagnosis.Explain(err, s.plan.Namespace)
	}
	if err := s.locate(service); err != nil {
		return err
	}
	if err := s.sameImage(); err != nil {
		return err
	}
	if s.plan.Settings.Inject {
		if err := s.inject(ctx); err != nil {
			return err
		}
	}
	if service != nil {
		if err := watching.OnlyEndpoint(ctx, s.cluster.DiscoveryV1(), s.plan.Namespace, service.Name, s.listen); err != nil {
			return err
		}
	}
	if s.plan.Alone() {
		return s.look(ctx)
	}
	return s.meet(ctx)
}

// awaitPods waits until the pods of a site run, and returns them; or says what keeps them from it.
func (s *site) awaitPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	if s.volume != nil {
		return s.volume.Running(ctx, s.watch)
	}
	warnings := watching.PodWarnings(ctx, s.cluster.CoreV1().Events(s.plan.Namespace))
	return s.watch.Running(ctx, diagnosis.NewReadiness(len(s.plan.Roles()), time.Now(), warnings), nil)
}

// sameImage holds the pods to the image of the experiment.
func (s *site) sameImage() error {
	for i, r := range s.plan.Roles() {
		if err := s.pin.Hold(s.plan.Settings.Image, inspection.ImageOf(s.pods[s.plan.Name(r)], s.plan.Archs[i])); err != nil {
			return err
		}
	}
	return nil
}

// create makes the Service and the pods. A request that is given up half way may be carried out after all that there
// was has been removed, so each is brought to its end.
func (s *site) create(ctx context.Context) (service *corev1.Service, err error) {
	core, namespace := s.cluster.CoreV1(), s.plan.Namespace
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if s.plan.Path.Service() {
		service, err = core.Services(namespace).Create(whole, s.plan.Service(), metav1.CreateOptions{})
		s.made = s.made || !apierrors.IsForbidden(err)
		if why := diagnosis.NoServiceFamily(err, s.plan.Settings.Family); why != nil {
			return nil, why
		}
		if err != nil {
			return nil, diagnosis.Explain(err, namespace)
		}
	}
	for _, r := range slices.Backward(s.plan.Roles()) {
		pod := s.plan.Pod(r)
		err := untilAccount(ctx, func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			_, err := core.Pods(namespace).Create(whole, pod, metav1.CreateOptions{})
			s.made = s.made || !apierrors.IsForbidden(err)
			return err
		})
		if err == nil {
			continue
		}
		if why := diagnosis.NoHostNetwork(err, namespace); why != nil && pod.Spec.HostNetwork {
			return nil, why
		}
		return nil, diagnosis.Explain(err, namespace)
	}
	return service, nil
}

// accountTime is how long a new namespace may take to have what pods need.
const accountTime = 15 * time.Second

// untilAccount tries again while a new namespace has no account for its pods yet, or on OpenShift no range of users.
func untilAccount(ctx context.Context, do func() error) error {
	limited, cancel := context.WithTimeout(ctx, accountTime)
	defer cancel()
	for {
		err := do()
		if !apierrors.IsForbidden(err) || !lacksAccount(err.Error()) || watching.Pause(limited, 50*time.Millisecond) != nil {
			return err
		}
	}
}

func lacksAccount(text string) bool {
	return strings.Contains(text, `serviceaccount "default" not found`) ||
		strings.Contains(text, "unable to find annotation openshift.io/sa.scc.")
}

// locate finds the addresses, and checks by the pods' own status that they are where they should be.
func (s *site) locate(service *corev1.Service) error {
	for _, r := range s.plan.Roles() {
		p := s.pods[s.plan.Name(r)]
		if p == nil {
			return fmt.Errorf("pod %s: %w", s.plan.Name(r), diagnosis.ErrGone)
		}
		if p.Spec.NodeName != s.plan.Node(r) {
			return fmt.Errorf("pod %s is on node %s, not on %s; something in the cluster changes pods", p.Name, p.Spec.NodeName, s.plan.Node(r))
		}
		if p.Spec.HostNetwork == s.plan.InPod(r) {
			return fmt.Errorf("pod %s has not the network that was asked for; something in the cluster changes pods", p.Name)
		}
	}
	if s.plan.Alone() {
		return nil
	}
	address, err := s.address(manifest.Server)
	if err != nil && s.plan.Settings.Family != "" && s.plan.Settings.Network == "" {
		return diagnosis.NoAddress(s.pods[s.plan.Name(manifest.Server)], s.plan.Settings.Family)
	}
	if err != nil {
		return err
	}
	s.listen = netip.AddrPortFrom(address, uint16(s.plan.Settings.Port))
	s.dial = s.listen
	if service != nil {
		ip, err := netip.ParseAddr(service.Spec.ClusterIP)
		if err != nil {
			return fmt.Errorf("service %s has the address %q: %w", service.Name, service.Spec.ClusterIP, err)
		}
		s.dial = netip.AddrPortFrom(ip, s.listen.Port())
	}
	return nil
}

func (s *site) address(r manifest.Role) (netip.Addr, error) {
	p, o := s.pods[s.plan.Name(r)], s.plan.Settings
	if o.Network != "" && s.plan.InPod(r) {
		return inspection.AttachedAddress(p, o.Network, o.Family)
	}
	return inspection.PodAddress(p, o.Family)
}

// meetTime is how long the client tries to reach the server, in which nodes learn of new addresses.
const meetTime = 10 * time.Second

// meet has the client find the server by the way of the run.
func (s *site) meet(ctx context.Context) error {
	forServer := preflight.Spec{Role: preflight.Server, Token: preflight.NewToken(), Address: s.listen, Patience: meetTime}
	forClient := forServer
	forClient.Role, forClient.Address = preflight.Client, s.dial
	var both sync.WaitGroup
	var serverErr, clientErr error
	both.Go(func() { s.server, serverErr = s.report(ctx, manifest.Server, forServer) })
	both.Go(func() { s.client, clientErr = s.report(ctx, manifest.Client, forClient) })
	both.Wait()
	if err := errors.Join(serverErr, clientErr); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(s.server.Error, "listen"):
		return fmt.Errorf("%s can not listen: %s; choose another port with port=", s.plan.HostName(manifest.Server), s.server.Error)
	case s.client.Error != "":
		return fmt.Errorf("%s does not reach %s: %s%s", s.plan.HostName(manifest.Client), s.plan.HostName(manifest.Server), s.client.Error, s.policies(ctx))
	case s.server.Error != "":
		return fmt.Errorf("%s: %s", s.plan.HostName(manifest.Server), s.server.Error)
	case s.plan.Settings.Network != "" && s.plan.InPod(manifest.Client):
		return inspection.ByNetwork(s.pods[s.plan.Name(manifest.Client)], s.plan.Settings.Network, s.server.Peer)
	}
	return nil
}

// look has the client's place say what it is, where there is nobody to meet.
func (s *site) look(ctx context.Context) (err error) {
	s.client, err = s.report(ctx, manifest.Client, preflight.Spec{
		Role: preflight.Witness, Patience: meetTime, Volume: s.volume.Path(),
	})
	if err == nil && s.volume != nil {
		err = s.volume.Check(s.client.Volume)
	}
	return err
}

// report has one place carry out its part of a meeting.
func (s *site) report(ctx context.Context, r manifest.Role, spec preflight.Spec) (preflight.Report, error) {
	request := agent.Request{Verb: preflight.Verb, Token: spec.Token, Body: spec}
	report, err := agent.Do[preflight.Report](ctx, s.host(r), request, nil)
	if errors.Is(err, host.ErrNoCommand) {
		err = fmt.Errorf("the image %s is not the agent's: %w", s.plan.Settings.Image, err)
	}
	return report, err
}

// policies names what may be in the way of traffic.
func (s *site) policies(ctx context.Context) string {
	found, err := s.cluster.NetworkingV1().NetworkPolicies(s.plan.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("; policies of the namespace %s are unknown (%v)%s", s.plan.Namespace, diagnosis.Explain(err, s.plan.Namespace), diagnosis.Elsewhere(s.plan.Settings.Port))
	}
	var ends [2]diagnosis.PolicyEnd
	for i, r := range []manifest.Role{manifest.Client, manifest.Server} {
		address, _ := s.address(r)
		ends[i] = diagnosis.PolicyEnd{Name: string(r), Labels: s.pods[s.plan.Name(r)].Labels, Address: address, Pod: s.plan.InPod(r)}
	}
	return diagnosis.InTheWay(found.Items, s.plan.Namespace, ends, s.plan.Settings.Port)
}

// remove removes the site and returns when it is gone.
func (s *site) remove(ctx context.Context) error {
	if err := s.removePods(ctx); err != nil {
		return err
	}
	return s.volume.Remove(ctx)
}

func (s *site) removePods(ctx context.Context) error {
	s.end()
	if s.watch != nil {
		defer s.watch.End()
	}
	core, namespace := s.cluster.CoreV1(), s.plan.Namespace
	which := metav1.ListOptions{LabelSelector: s.plan.Selector()}
	// A second is the least that still waits for the containers to end.
	err := core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, which)
	if s.plan.Path.Service() {
		err = errors.Join(err, diagnosis.IgnoreGone(core.Services(namespace).Delete(ctx, s.plan.Name("svc"), metav1.DeleteOptions{})))
	}
	if err := diagnosis.IgnoreGone(err); err != nil {
		return diagnosis.Explain(err, namespace)
	}
	if s.watch != nil && s.watch.AllGone(ctx) {
		return nil
	}
	pods := core.Pods(namespace)
	return diagnosis.Explain(watching.Gone(ctx, which, pods.List, pods.Watch), namespace)
}

// host is one end as a host.
func (s *site) host(r manifest.Role) host.Host {
	name, pod := s.plan.HostName(r), s.plan.Name(r)
	exec := s.cluster.Exec(s.plan.Namespace, pod)
	address, _ := s.address(r) // the client's may be unknown, and nothing listens there
	return &end{address: address, explain: s.lost, place: remote.Place{Name: name, Agent: s.plan.AgentPath(), Exec: func(ctx context.Context, args []string, streams remote.Streams) error {
		held, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(s.life, func() { cancel(errors.New("the pod is removed")) })()
		return exec(held, args, streams)
	}}}
}

// complaintTime is how long a script may go on that has complained. When it has ended without reading all of its input,
// its connection does not end.
const complaintTime = time.Second

// A speech is what a far end says, which may still say it when nobody listens any more.
type speech struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first func() // called when it begins to speak
}

func (s *speech) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first != nil && s.text.Len() == 0 {
		s.first()
	}
	return s.text.Write(b)
}

func (s *speech) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shell is that of one end's container, which needs no agent.
func (s *site) shell(r manifest.Role) shell {
	exec := s.cluster.Exec(s.plan.Namespace, s.plan.Name(r))
	return func(ctx context.Context, stdin io.Reader, script string, args ...string) (string, string, error) {
		ended, cancel := context.WithCancel(ctx)
		defer cancel()
		var out, errs speech
		errs.first = func() { time.AfterFunc(complaintTime, cancel) }
		command := append([]string{"sh", "-c", script, manifest.InjectPath}, args...)
		err := exec(ended, command, remote.Streams{Stdin: stdin, Stdout: &out, Stderr: &errs})
		return out.String(), errs.String(), err
	}
}

// An end is a host of a site.
type end struct {
	place   remote.Place
	address netip.Addr
	explain func(context.Context, error) error
}

func (e *end) Name() string { return e.place.Name }

func (e *end) Addr() netip.Addr { return e.address }

// CPUs are not chosen: which ones a pod may have is the node's own matter.
func (e *end) CPUs() []int { return nil }

func (e *end) Run(ctx context.Context, c host.Cmd) error { return e.explain(ctx, e.place.Run(ctx, c)) }

// mtu is the smaller of what both ends have for the connection.
func (s *site) mtu() int {
	if s.client.MTU == 0 || s.server.MTU == 0 {
		return max(s.client.MTU, s.server.MTU)
	}
	return min(s.client.MTU, s.server.MTU)
}

// shared says whether both ends use the CPUs of one machine; two nodes may be one machine too.
func (s *site) shared() bool {
	if s.plan.Alone() || s.plan.Nodes[0] == s.plan.Nodes[1] {
		return true
	}
	a, b := inspection.FactOf(s.client, "boot-id"), inspection.FactOf(s.server, "boot-id")
	return a == b && a != result.Unknown
}

// facts are those of this site.
func (s *site) facts() []result.Fact {
	if s.plan.Alone() {
		return slices.Concat(s.ownFacts(), s.volume.Facts(), s.agentFacts())
	}
	source := "preserved"
	if address, err := s.address(manifest.Client); err != nil || s.server.Peer != address {
		source = "translated to " + s.server.Peer.String()
	}
	facts := []result.Fact{
		{Name: "client", Value: s.plan.HostName(manifest.Client)}, {Name: "server", Value: s.plan.HostName(manifest.Server)},
		{Name: "dial", Value: s.dial.String()},
		{Name: "mtu", Value: inspection.Known(strconv.Itoa(s.mtu()), s.mtu() > 0)},
		{Name: "congestion-control", Value: inspection.Known(s.client.Congestion, s.client.Congestion != "")},
		{Name: "client-offloads", Value: inspection.Known(s.client.Device.Offloads, s.client.Device.Offloads != "")},
		{Name: "server-offloads", Value: inspection.Known(s.server.Device.Offloads, s.server.Device.Offloads != "")},
		{Name: "source-address", Value: source},
		{Name: "image", Value: s.plan.Settings.Image},
		{Name: "image-digest", Value: s.digest()},
		inspection.SidecarFact(s.pods),
		{Name: "agent-version", Value: s.client.Program},
	}
	return append(facts, s.agentFacts()...)
}

// ownFacts are those of a site with one pod.
func (s *site) ownFacts() []result.Fact {
	return []result.Fact{
		{Name: "client", Value: s.plan.HostName(manifest.Client)},
		{Name: "image", Value: s.plan.Settings.Image},
		{Name: "image-digest", Value: s.digest()},
		inspection.SidecarFact(s.pods),
		{Name: "agent-version", Value: s.client.Program},
	}
}

// digest is what the runtimes say that the image is, one for each if they differ.
func (s *site) digest() string {
	var found [2]string
	for i, r := range s.plan.Roles() {
		id := inspection.ImageOf(s.pods[s.plan.Name(r)], s.plan.Archs[i]).Digest
		found[i] = inspection.Known(id, id != "")
	}
	if found[0] != found[1] && !s.plan.Alone() {
		return "client " + found[0] + ", server " + found[1]
	}
	return found[0]
}

// spent is what the run took of the cluster, from the making of its places to their end. A watch is one request, however
// long it lasts, and so is a command in a pod.
func (s *site) spent() []result.Value {
	return []result.Value{
		result.NewValue(metric.Named(metric.Pods), float64(len(s.pods))),
		result.NewValue(metric.Named(metric.APICalls), float64(s.cluster.Calls()-s.calls)),
	}
}
