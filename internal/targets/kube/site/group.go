// Package site creates and removes the pods and Services of a block on a cluster, copies the agent into images without
// it, and offers the pods as hosts with the connections between them. It also deploys the Vault of a block.
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
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// A Group holds the pods that placements with the same ends share: a client and a server, with a Service if a path
// needs one, or a client alone.
type Group struct {
	Cluster  *cluster.Cluster
	Plan     manifest.Blueprint
	Injector *Injector
	Pin      *inspection.Pin // image of the experiment
	Volume   *volumes.Volume // nil unless storage is measured
	Nodes    cluster.Period  // health of the nodes since the block began

	MayExist bool                   // something was created, or may have been
	Pods     map[string]*corev1.Pod // by name, as they were when all ran
	Listen   netip.AddrPort         // address and port of the server
	Ways     []*Connection          // one for each path of the plan, once the pods run

	watch      *cluster.PodWatch // of the pods
	service    *corev1.Service   // nil unless a path uses it
	serviceErr error             // why the Service could not be created
	payloads   [2]payload        // agents copied to the client's pod and the server's, with inject=yes
	throttled  [2]int64          // throttling counts of the client and the server in their last reports
	agents     *agent.Pool
	hosts      map[manifest.Role]*host.Scoped
	failed     atomic.Bool // a command failed, so its objects may be left
}

// Create creates the group and checks each path. If it returns an error, it has removed everything. The error of a path
// that does not work is in Way.Err instead.
func (g *Group) Create(ctx context.Context) error {
	g.agents, g.hosts = agent.NewPool(), map[manifest.Role]*host.Scoped{}
	for _, r := range g.Plan.Roles() {
		g.hosts[r] = host.NewScoped(failureRecorder{podHost{g, r}, &g.failed})
	}
	if err := g.start(ctx); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
		defer cancel()
		return errors.Join(err, g.Remove(cleanup))
	}
	for _, p := range g.Plan.Paths() {
		w := &Connection{group: g, path: p}
		w.Err = w.check(ctx)
		g.Ways = append(g.Ways, w)
	}
	return nil
}

// CleanupTime limits the removal of objects after a failure, and also the requests that create objects.
const CleanupTime = 30 * time.Second

// start creates the volume, the Service and the pods, waits until they run, and copies the agent if it is injected.
func (g *Group) start(ctx context.Context) error {
	if err := g.Volume.Provision(ctx); err != nil {
		return err
	}
	if err := g.create(ctx); err != nil {
		return err
	}
	var err error
	g.watch = cluster.WatchPods(g.Cluster.CoreV1().Pods(g.Plan.Namespace), g.Plan.Selector(), len(g.Plan.Roles()))
	if g.Pods, err = g.awaitPods(ctx); err != nil {
		return diagnosis.Explain(err, g.Plan.Namespace)
	}
	if err := g.checkPods(); err != nil {
		return err
	}
	if err := g.checkImage(); err != nil {
		return err
	}
	if g.Plan.Settings.Inject {
		return g.inject(ctx)
	}
	return nil
}

// awaitPods waits until the pods run, and returns them. The error explains what prevents it.
func (g *Group) awaitPods(ctx context.Context) (map[string]*corev1.Pod, error) {
	if g.Volume.HasClaim() {
		return g.Volume.Running(ctx, g.watch)
	}
	warnings := cluster.PodWarnings(ctx, g.Cluster.CoreV1().Events(g.Plan.Namespace))
	return g.watch.AwaitRunning(ctx, diagnosis.NewReadiness(len(g.Plan.Roles()), time.Now(), warnings), nil)
}

// checkImage returns an error if a pod runs another image than the experiment's other pods.
func (g *Group) checkImage() error {
	for i, r := range g.Plan.Roles() {
		image := inspection.ImageOf(g.Pods[g.Plan.Name(r)], g.Plan.Archs[i])
		if err := g.Pin.Check(g.Plan.Settings.Image, image); err != nil {
			return err
		}
	}
	return nil
}

// create creates the Service and the pods. Its requests ignore the end of ctx, because the API server could carry out a
// cancelled request after the cleanup. Without the Service, direct paths still work.
func (g *Group) create(ctx context.Context) error {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
	defer cancel()
	if g.Plan.UsesService() {
		g.service, g.serviceErr = g.createService(whole)
	}
	if g.serviceErr != nil && !slices.ContainsFunc(g.Plan.Paths(), direct) {
		return g.serviceErr
	}
	for _, r := range slices.Backward(g.Plan.Roles()) {
		pod := g.Plan.Pod(r)
		err := retryUntilAccount(ctx, func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			_, err := g.Cluster.CoreV1().Pods(g.Plan.Namespace).Create(whole, pod, metav1.CreateOptions{})
			g.MayExist = g.MayExist || !apierrors.IsForbidden(err)
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

func direct(p result.Path) bool { return !p.Service() }

func (g *Group) createService(ctx context.Context) (*corev1.Service, error) {
	made, err := g.Cluster.CoreV1().Services(g.Plan.Namespace).Create(ctx, g.Plan.Service(), metav1.CreateOptions{})
	g.MayExist = g.MayExist || !apierrors.IsForbidden(err)
	if why := diagnosis.NoServiceFamily(err, g.Plan.Settings.Family); why != nil {
		return nil, why
	}
	return made, diagnosis.Explain(err, g.Plan.Namespace)
}

// accountTime limits the wait for the prerequisites of pods in a new namespace.
const accountTime = 15 * time.Second

// retryUntilAccount retries do while a new namespace lacks the pods' service account, or, on OpenShift, the range of
// user IDs for pods.
func retryUntilAccount(ctx context.Context, do func() error) error {
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

// checkPods checks, by the status of the pods, that their nodes and networks are as planned, and sets Listen.
func (g *Group) checkPods() error {
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

// Way returns the connection on a path, one of the plan's.
func (g *Group) Way(p result.Path) *Connection {
	return g.Ways[slices.Index(g.Plan.Paths(), p)]
}

// Remove ends the agents, removes the pods with the Service and the volume, and returns when everything is gone.
func (g *Group) Remove(ctx context.Context) error {
	g.agents.Close()
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
	// One second is the shortest grace period that still waits for the containers to end.
	err := core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, which)
	if g.Plan.UsesService() {
		err = errors.Join(err, diagnosis.IgnoreNotFound(core.Services(namespace).Delete(ctx, g.Plan.Name("svc"),
			metav1.DeleteOptions{})))
	}
	if err := diagnosis.IgnoreNotFound(err); err != nil {
		return diagnosis.Explain(err, namespace)
	}
	if g.watch != nil && g.watch.AwaitGone(ctx) {
		return nil
	}
	pods := core.Pods(namespace)
	return diagnosis.Explain(cluster.AwaitGone(ctx, which, pods.List, pods.Watch), namespace)
}
