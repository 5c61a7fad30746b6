// Package site is what a block has on a cluster: groups of pods from their making to their end, the hosts that they
// are, and the ways between them.
package site

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// A Group is what placements with the same ends share: two pods and perhaps a Service, or one pod alone, from their
// making to their end.
type Group struct {
	Cluster  *cluster.Cluster
	Plan     manifest.Blueprint
	Injector *Injector
	Pin      *inspection.Pin // of the experiment
	Volume   *volumes.Volume // nil where no storage is measured
	Nodes    cluster.Period  // since the block began

	Made   bool                   // something of it was made, or may have been: not all was refused
	Pods   map[string]*corev1.Pod // as they were when all ran
	Listen netip.AddrPort         // of the server
	Ways   []*Way                 // one for each path of the plan, once the pods run

	watch     *cluster.PodWatch // what becomes of the pods
	service   *corev1.Service   // nil where nobody dials one
	noService error             // why there is none
	sent      [2]parcel         // to the client's pod and the server's, with inject=yes
	throttled [2]int64          // how often each had been when it was asked last
	crew      *agent.Crew
	hosts     map[manifest.Role]*host.Scoped
	failed    atomic.Bool // a command did, so that an agent may have been killed
}

// Make makes what the blueprint says and tries each way. After an error everything is removed again; that a way cannot
// be gone is the way's own.
func (g *Group) Make(ctx context.Context) error {
	g.crew, g.hosts = agent.NewCrew(), map[manifest.Role]*host.Scoped{}
	for _, r := range g.Plan.Roles() {
		g.hosts[r] = host.NewScoped(noted{end{g, r}, &g.failed})
	}
	if err := g.raise(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
		defer cancel()
		return errors.Join(err, g.Remove(cleanup))
	}
	for _, p := range g.Plan.Paths() {
		w := &Way{group: g, path: p}
		w.Err = w.try(ctx)
		g.Ways = append(g.Ways, w)
	}
	return nil
}

// CleanupTime is how long the remains of something that failed may take to go.
const CleanupTime = 30 * time.Second

func (g *Group) raise(ctx context.Context) error {
	if err := g.Volume.Provision(ctx); err != nil {
		return err
	}
	if err := g.create(ctx); err != nil {
		return err
	}
	var err error
	g.watch = cluster.Pods(g.Cluster.CoreV1().Pods(g.Plan.Namespace), g.Plan.Selector(), len(g.Plan.Roles()))
	if g.Pods, err = g.awaitPods(ctx); err != nil {
		return diagnosis.Explain(err, g.Plan.Namespace)
	}
	if err := g.locate(); err != nil {
		return err
	}
	if err := g.sameImage(); err != nil {
		return err
	}
	if g.Plan.Settings.Inject {
		return g.inject(ctx)
	}
	return nil
}

// awaitPods waits until the pods run, and returns them; or says what keeps them from it.
func (g *Group) awaitPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	if g.Volume.HasClaim() {
		return g.Volume.Running(ctx, g.watch)
	}
	warnings := cluster.PodWarnings(ctx, g.Cluster.CoreV1().Events(g.Plan.Namespace))
	return g.watch.Running(ctx, diagnosis.NewReadiness(len(g.Plan.Roles()), time.Now(), warnings), nil)
}

// sameImage holds the pods to the image of the experiment.
func (g *Group) sameImage() error {
	for i, r := range g.Plan.Roles() {
		image := inspection.ImageOf(g.Pods[g.Plan.Name(r)], g.Plan.Archs[i])
		if err := g.Pin.Check(g.Plan.Settings.Image, image); err != nil {
			return err
		}
	}
	return nil
}

// create makes the Service and the pods. A request that is given up half way may be carried out after all that there
// was has been removed, so each is brought to its end. Without the Service there may be other ways to go.
func (g *Group) create(ctx context.Context) error {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
	defer cancel()
	if g.Plan.UsesService() {
		g.service, g.noService = g.createService(whole)
	}
	if g.noService != nil && !slices.ContainsFunc(g.Plan.Paths(), direct) {
		return g.noService
	}
	for _, r := range slices.Backward(g.Plan.Roles()) {
		pod := g.Plan.Pod(r)
		err := untilAccount(ctx, func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			_, err := g.Cluster.CoreV1().Pods(g.Plan.Namespace).Create(whole, pod, metav1.CreateOptions{})
			g.Made = g.Made || !apierrors.IsForbidden(err)
			return err
		})
		if err == nil {
			continue
		}
		if why := diagnosis.NoHostNetwork(err, g.Plan.Namespace); why != nil && pod.Spec.HostNetwork {
			return why
		}
		return diagnosis.Explain(err, g.Plan.Namespace)
	}
	return nil
}

func direct(p targets.Path) bool { return !p.Service() }

func (g *Group) createService(ctx context.Context) (*corev1.Service, error) {
	made, err := g.Cluster.CoreV1().Services(g.Plan.Namespace).Create(ctx, g.Plan.Service(), metav1.CreateOptions{})
	g.Made = g.Made || !apierrors.IsForbidden(err)
	if why := diagnosis.NoServiceFamily(err, g.Plan.Settings.Family); why != nil {
		return nil, why
	}
	return made, diagnosis.Explain(err, g.Plan.Namespace)
}

// accountTime is how long a new namespace may take to have what pods need.
const accountTime = 15 * time.Second

// untilAccount tries again while a new namespace has no account for its pods yet, or on OpenShift no range of users.
func untilAccount(ctx context.Context, do func() error) error {
	limited, cancel := context.WithTimeout(ctx, accountTime)
	defer cancel()
	for {
		err := do()
		if !apierrors.IsForbidden(err) || !lacksAccount(err.Error()) || cluster.Pause(limited, 50*time.Millisecond) != nil {
			return err
		}
	}
}

func lacksAccount(text string) bool {
	return strings.Contains(text, `serviceaccount "default" not found`) ||
		strings.Contains(text, "unable to find annotation openshift.io/sa.scc.")
}

// locate finds the addresses, and checks by the pods' own status that they are where they should be.
func (g *Group) locate() error {
	for _, r := range g.Plan.Roles() {
		p := g.Pods[g.Plan.Name(r)]
		if p == nil {
			return fmt.Errorf("pod %s: %w", g.Plan.Name(r), diagnosis.ErrGone)
		}
		if p.Spec.NodeName != g.Plan.Node(r) {
			return fmt.Errorf("pod %s is on node %s, not on %s; something in the cluster changes pods", p.Name, p.Spec.NodeName,
				g.Plan.Node(r))
		}
		if p.Spec.HostNetwork == g.Plan.InPod(r) {
			return fmt.Errorf("pod %s has not the network that was asked for; something in the cluster changes pods", p.Name)
		}
		if g.Plan.InPod(r) {
			if err := inspection.CheckDefaultNetwork(p, g.Plan.Settings.DefaultNetwork); err != nil {
				return err
			}
		}
	}
	if g.Plan.ClientOnly() {
		return nil
	}
	address, err := g.address(manifest.Server)
	if err != nil && g.Plan.Settings.Family != "" && g.Plan.Settings.Network == "" {
		return diagnosis.NoAddress(g.Pods[g.Plan.Name(manifest.Server)], g.Plan.Settings.Family)
	}
	g.Listen = netip.AddrPortFrom(address, uint16(g.Plan.Settings.Port))
	return err
}

func (g *Group) address(r manifest.Role) (netip.Addr, error) {
	p, o := g.Pods[g.Plan.Name(r)], g.Plan.Settings
	if o.Network != "" && g.Plan.InPod(r) {
		return inspection.AttachedAddress(p, o.Network, o.Family)
	}
	return inspection.PodAddress(p, o.Family)
}

// Way is that of one of the plan's paths.
func (g *Group) Way(p targets.Path) *Way {
	return g.Ways[slices.Index(g.Plan.Paths(), p)]
}

// Remove ends the agents, removes the pods with what belongs to them, and returns when all of it is gone.
func (g *Group) Remove(ctx context.Context) error {
	g.crew.Close()
	for _, h := range g.hosts {
		h.End()
	}
	if err := g.removePods(ctx); err != nil {
		return err
	}
	return g.Volume.Remove(ctx)
}

func (g *Group) removePods(ctx context.Context) error {
	if g.watch != nil {
		defer g.watch.End()
	}
	core, namespace := g.Cluster.CoreV1(), g.Plan.Namespace
	which := metav1.ListOptions{LabelSelector: g.Plan.Selector()}
	// A second is the least that still waits for the containers to end.
	err := core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, which)
	if g.Plan.UsesService() {
		err = errors.Join(err, diagnosis.IgnoreNotFound(core.Services(namespace).Delete(ctx, g.Plan.Name("svc"),
			metav1.DeleteOptions{})))
	}
	if err := diagnosis.IgnoreNotFound(err); err != nil {
		return diagnosis.Explain(err, namespace)
	}
	if g.watch != nil && g.watch.AllGone(ctx) {
		return nil
	}
	pods := core.Pods(namespace)
	return diagnosis.Explain(cluster.Gone(ctx, which, pods.List, pods.Watch), namespace)
}
