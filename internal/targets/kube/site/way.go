package site

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A Way is how the client of a group goes on one of its paths: to the server itself, or to it by the Service. Without a
// server it is what the client has to measure.
type Way struct {
	Err    error // why it cannot be gone
	Client preflight.Report
	Server preflight.Report
	group  *Group
	path   targets.Path
	dial   netip.AddrPort
}

// MeetTime is how long the client tries to reach the server, in which nodes learn of new addresses.
const MeetTime = 10 * time.Second

// try goes the way once.
func (w *Way) try(ctx context.Context) (err error) {
	if w.group.Plan.ClientOnly() {
		return w.look(ctx)
	}
	if w.dial, err = w.group.dial(ctx, w.path); err != nil {
		return err
	}
	return w.meet(ctx)
}

// dial is what the client connects to on a path, once it leads to the server alone.
func (g *Group) dial(ctx context.Context, p targets.Path) (netip.AddrPort, error) {
	if !p.Service() {
		return g.Listen, nil
	}
	if g.noService != nil {
		return netip.AddrPort{}, g.noService
	}
	name, address := g.service.Name, g.service.Spec.ClusterIP
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("service %s has the address %q: %w", name, address, err)
	}
	return netip.AddrPortFrom(ip, g.Listen.Port()),
		cluster.OnlyEndpoint(ctx, g.Cluster.DiscoveryV1(), g.Plan.Namespace, name, g.Listen)
}

// meet has the client find the server by the way of the runs.
func (w *Way) meet(ctx context.Context) error {
	g, plan := w.group, w.group.Plan
	forServer := preflight.Spec{Role: preflight.Server, Token: preflight.NewToken(), Address: g.Listen, Patience: MeetTime}
	forClient := forServer
	forClient.Role, forClient.Address = preflight.Client, w.dial
	var both sync.WaitGroup
	var serverErr, clientErr error
	both.Go(func() { w.Server, serverErr = g.Report(ctx, manifest.Server, forServer) })
	both.Go(func() { w.Client, clientErr = g.Report(ctx, manifest.Client, forClient) })
	both.Wait()
	if err := errors.Join(serverErr, clientErr); err != nil {
		return err
	}
	switch {
	case w.Server.NoPort:
		return fmt.Errorf("%s cannot listen: %s; choose another port with port=", plan.HostName(manifest.Server),
			w.Server.Error)
	case w.Client.Error != "":
		return fmt.Errorf("%s does not reach %s: %s%s", plan.HostName(manifest.Client), plan.HostName(manifest.Server),
			w.Client.Error, g.policies(ctx))
	case w.Server.Error != "":
		return fmt.Errorf("%s: %s", plan.HostName(manifest.Server), w.Server.Error)
	case plan.Settings.Network != "" && plan.InPod(manifest.Client):
		return inspection.CheckNetworkRoute(g.Pods[plan.Name(manifest.Client)], plan.Settings.Network, w.Server.Peer)
	case plan.Settings.DefaultNetwork != "" && plan.InPod(manifest.Client):
		return inspection.CheckDefaultRoute(g.Pods[plan.Name(manifest.Client)], plan.Settings.DefaultNetwork, w.Client)
	}
	return nil
}

// look has the client's place say what it is, where there is nobody to meet.
func (w *Way) look(ctx context.Context) (err error) {
	v := w.group.Volume
	w.Client, err = w.group.Report(ctx, manifest.Client, preflight.Spec{
		Role: preflight.Witness, Patience: MeetTime, Volume: v.Path(),
	})
	if err == nil && v != nil {
		err = v.Check(w.Client.Volume, w.group.Pods[w.group.Plan.Name(manifest.Client)])
	}
	return err
}

// Report has one place carry out its part of a meeting.
func (g *Group) Report(ctx context.Context, r manifest.Role, spec preflight.Spec) (preflight.Report, error) {
	request := agent.Request{Verb: preflight.Verb, Token: spec.Token, Body: spec}
	report, err := agent.Do[preflight.Report](ctx, g.Host(r), request, nil)
	if errors.Is(err, host.ErrNoCommand) {
		err = fmt.Errorf("the image %s is not the agent's: %w", g.Plan.Settings.Image, err)
	}
	if err == nil {
		g.throttled[slices.Index(g.Plan.Roles(), r)] = report.Throttled
	}
	return report, err
}

// policies names what may be in the way of traffic.
func (g *Group) policies(ctx context.Context) string {
	found, err := g.Cluster.NetworkingV1().NetworkPolicies(g.Plan.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Sprintf("; policies of the namespace %s are unknown (%v)%s", g.Plan.Namespace,
			diagnosis.Explain(err, g.Plan.Namespace), diagnosis.FirewallHint(g.Plan.Settings.Port))
	}
	var ends [2]diagnosis.PolicyEnd
	for i, r := range []manifest.Role{manifest.Client, manifest.Server} {
		address, _ := g.address(r)
		ends[i] = diagnosis.PolicyEnd{Name: string(r), Labels: g.Pods[g.Plan.Name(r)].Labels, Address: address,
			Pod: g.Plan.InPod(r)}
	}
	return diagnosis.BlockingPolicies(found.Items, g.Plan.Namespace, ends, g.Plan.Settings.Port)
}
