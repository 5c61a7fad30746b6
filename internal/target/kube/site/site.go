// Package site is the place of a run on a cluster: two pods and perhaps a Service, or one pod alone, from their making
// to their end, and the hosts that they are.
package site

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/injection"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
)

// A Site is two pods and perhaps a Service, or one pod alone, from their making to their end.
type Site struct {
	Cluster  *connection.Cluster
	Plan     manifest.Blueprint
	Injector *injection.Injector
	Pin      inspection.Pin      // of the experiment
	sent     [2]injection.Parcel // to the client's pod and the server's, with inject=yes
	life     context.Context     // ends with the site; no command outlives it
	end      context.CancelFunc
	Pods     map[string]*corev1.Pod // as they were when both ran
	watch    *watching.PodWatch     // what becomes of them
	Volume   *volumes.Volume        // nil where no storage is measured
	Nodes    *watching.Period       // since the site was opened
	Dial     netip.AddrPort
	Listen   netip.AddrPort
	Client   preflight.Report
	Server   preflight.Report
	calls    int64 // to the API server, when the site was begun
	Made     bool  // something of it was made, or may have been: not all was refused
}

// Make makes what the blueprint says and checks it. After an error everything is removed again.
func (s *Site) Make(ctx context.Context) error {
	s.life, s.end = context.WithCancel(context.Background())
	s.calls = s.Cluster.Calls()
	err := s.raise(ctx)
	if err == nil {
		return nil
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
	defer cancel()
	return errors.Join(err, s.Remove(cleanup))
}

// CleanupTime is how long the remains of something that failed may take to go.
const CleanupTime = 30 * time.Second

func (s *Site) raise(ctx context.Context) error {
	if err := s.Volume.Provision(ctx); err != nil {
		return err
	}
	service, err := s.create(ctx)
	if err != nil {
		return err
	}
	s.watch = watching.Pods(s.Cluster.CoreV1().Pods(s.Plan.Namespace), s.Plan.Selector(), len(s.Plan.Roles()))
	if s.Pods, err = s.awaitPods(ctx); err != nil {
		return diagnosis.Explain(err, s.Plan.Namespace)
	}
	if err := s.locate(service); err != nil {
		return err
	}
	if err := s.sameImage(); err != nil {
		return err
	}
	if s.Plan.Settings.Inject {
		if err := s.inject(ctx); err != nil {
			return err
		}
	}
	if service != nil {
		if err := watching.OnlyEndpoint(ctx, s.Cluster.DiscoveryV1(), s.Plan.Namespace, service.Name, s.Listen); err != nil {
			return err
		}
	}
	if s.Plan.Alone() {
		return s.look(ctx)
	}
	return s.meet(ctx)
}

// awaitPods waits until the pods of a site run, and returns them; or says what keeps them from it.
func (s *Site) awaitPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	if s.Volume != nil {
		return s.Volume.Running(ctx, s.watch)
	}
	warnings := watching.PodWarnings(ctx, s.Cluster.CoreV1().Events(s.Plan.Namespace))
	return s.watch.Running(ctx, diagnosis.NewReadiness(len(s.Plan.Roles()), time.Now(), warnings), nil)
}

// sameImage holds the pods to the image of the experiment.
func (s *Site) sameImage() error {
	for i, r := range s.Plan.Roles() {
		if err := s.Pin.Hold(s.Plan.Settings.Image, inspection.ImageOf(s.Pods[s.Plan.Name(r)], s.Plan.Archs[i])); err != nil {
			return err
		}
	}
	return nil
}

// create makes the Service and the pods. A request that is given up half way may be carried out after all that there
// was has been removed, so each is brought to its end.
func (s *Site) create(ctx context.Context) (service *corev1.Service, err error) {
	core, namespace := s.Cluster.CoreV1(), s.Plan.Namespace
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
	defer cancel()
	if s.Plan.Path.Service() {
		service, err = core.Services(namespace).Create(whole, s.Plan.Service(), metav1.CreateOptions{})
		s.Made = s.Made || !apierrors.IsForbidden(err)
		if why := diagnosis.NoServiceFamily(err, s.Plan.Settings.Family); why != nil {
			return nil, why
		}
		if err != nil {
			return nil, diagnosis.Explain(err, namespace)
		}
	}
	for _, r := range slices.Backward(s.Plan.Roles()) {
		pod := s.Plan.Pod(r)
		err := untilAccount(ctx, func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			_, err := core.Pods(namespace).Create(whole, pod, metav1.CreateOptions{})
			s.Made = s.Made || !apierrors.IsForbidden(err)
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
func (s *Site) locate(service *corev1.Service) error {
	for _, r := range s.Plan.Roles() {
		p := s.Pods[s.Plan.Name(r)]
		if p == nil {
			return fmt.Errorf("pod %s: %w", s.Plan.Name(r), diagnosis.ErrGone)
		}
		if p.Spec.NodeName != s.Plan.Node(r) {
			return fmt.Errorf("pod %s is on node %s, not on %s; something in the cluster changes pods", p.Name, p.Spec.NodeName,
				s.Plan.Node(r))
		}
		if p.Spec.HostNetwork == s.Plan.InPod(r) {
			return fmt.Errorf("pod %s has not the network that was asked for; something in the cluster changes pods", p.Name)
		}
	}
	if s.Plan.Alone() {
		return nil
	}
	address, err := s.address(manifest.Server)
	if err != nil && s.Plan.Settings.Family != "" && s.Plan.Settings.Network == "" {
		return diagnosis.NoAddress(s.Pods[s.Plan.Name(manifest.Server)], s.Plan.Settings.Family)
	}
	if err != nil {
		return err
	}
	s.Listen = netip.AddrPortFrom(address, uint16(s.Plan.Settings.Port))
	s.Dial = s.Listen
	if service != nil {
		ip, err := netip.ParseAddr(service.Spec.ClusterIP)
		if err != nil {
			return fmt.Errorf("service %s has the address %q: %w", service.Name, service.Spec.ClusterIP, err)
		}
		s.Dial = netip.AddrPortFrom(ip, s.Listen.Port())
	}
	return nil
}

func (s *Site) address(r manifest.Role) (netip.Addr, error) {
	p, o := s.Pods[s.Plan.Name(r)], s.Plan.Settings
	if o.Network != "" && s.Plan.InPod(r) {
		return inspection.AttachedAddress(p, o.Network, o.Family)
	}
	return inspection.PodAddress(p, o.Family)
}

// MeetTime is how long the client tries to reach the server, in which nodes learn of new addresses.
const MeetTime = 10 * time.Second

// meet has the client find the server by the way of the run.
func (s *Site) meet(ctx context.Context) error {
	forServer := preflight.Spec{Role: preflight.Server, Token: preflight.NewToken(), Address: s.Listen, Patience: MeetTime}
	forClient := forServer
	forClient.Role, forClient.Address = preflight.Client, s.Dial
	var both sync.WaitGroup
	var serverErr, clientErr error
	both.Go(func() { s.Server, serverErr = s.Report(ctx, manifest.Server, forServer) })
	both.Go(func() { s.Client, clientErr = s.Report(ctx, manifest.Client, forClient) })
	both.Wait()
	if err := errors.Join(serverErr, clientErr); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(s.Server.Error, "listen"):
		return fmt.Errorf("%s can not listen: %s; choose another port with port=", s.Plan.HostName(manifest.Server),
			s.Server.Error)
	case s.Client.Error != "":
		return fmt.Errorf("%s does not reach %s: %s%s", s.Plan.HostName(manifest.Client), s.Plan.HostName(manifest.Server),
			s.Client.Error, s.policies(ctx))
	case s.Server.Error != "":
		return fmt.Errorf("%s: %s", s.Plan.HostName(manifest.Server), s.Server.Error)
	case s.Plan.Settings.Network != "" && s.Plan.InPod(manifest.Client):
		return inspection.ByNetwork(s.Pods[s.Plan.Name(manifest.Client)], s.Plan.Settings.Network, s.Server.Peer)
	}
	return nil
}

// look has the client's place say what it is, where there is nobody to meet.
func (s *Site) look(ctx context.Context) (err error) {
	s.Client, err = s.Report(ctx, manifest.Client, preflight.Spec{
		Role: preflight.Witness, Patience: MeetTime, Volume: s.Volume.Path(),
	})
	if err == nil && s.Volume != nil {
		err = s.Volume.Check(s.Client.Volume)
	}
	return err
}

// Report has one place carry out its part of a meeting.
func (s *Site) Report(ctx context.Context, r manifest.Role, spec preflight.Spec) (preflight.Report, error) {
	request := agent.Request{Verb: preflight.Verb, Token: spec.Token, Body: spec}
	report, err := agent.Do[preflight.Report](ctx, s.Host(r), request, nil)
	if errors.Is(err, host.ErrNoCommand) {
		err = fmt.Errorf("the image %s is not the agent's: %w", s.Plan.Settings.Image, err)
	}
	return report, err
}

// policies names what may be in the way of traffic.
func (s *Site) policies(ctx context.Context) string {
	found, err := s.Cluster.NetworkingV1().NetworkPolicies(s.Plan.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("; policies of the namespace %s are unknown (%v)%s", s.Plan.Namespace,
			diagnosis.Explain(err, s.Plan.Namespace), diagnosis.Elsewhere(s.Plan.Settings.Port))
	}
	var ends [2]diagnosis.PolicyEnd
	for i, r := range []manifest.Role{manifest.Client, manifest.Server} {
		address, _ := s.address(r)
		ends[i] = diagnosis.PolicyEnd{Name: string(r), Labels: s.Pods[s.Plan.Name(r)].Labels, Address: address,
			Pod: s.Plan.InPod(r)}
	}
	return diagnosis.InTheWay(found.Items, s.Plan.Namespace, ends, s.Plan.Settings.Port)
}

// Remove removes the site and returns when it is gone.
func (s *Site) Remove(ctx context.Context) error {
	if err := s.removePods(ctx); err != nil {
		return err
	}
	return s.Volume.Remove(ctx)
}

func (s *Site) removePods(ctx context.Context) error {
	s.end()
	if s.watch != nil {
		defer s.watch.End()
	}
	core, namespace := s.Cluster.CoreV1(), s.Plan.Namespace
	which := metav1.ListOptions{LabelSelector: s.Plan.Selector()}
	// A second is the least that still waits for the containers to end.
	err := core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, which)
	if s.Plan.Path.Service() {
		err = errors.Join(err, diagnosis.IgnoreGone(core.Services(namespace).Delete(ctx, s.Plan.Name("svc"),
			metav1.DeleteOptions{})))
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
