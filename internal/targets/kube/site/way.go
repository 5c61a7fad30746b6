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
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A Connection is the connection of a group's client on one path: to the server itself or to its Service. In a group
// without a server it has only the client's report.
type Connection struct {
	Err    error // why the path does not work
	Client preflight.Report
	Server preflight.Report
	group  *Group
	path   result.Path
	dial   netip.AddrPort
	mesh   inspection.Interception // of the last connection by a mesh; its zero value for a group without a server
}

// PreflightTimeout limits the client's attempts to reach the server. Nodes need a moment to learn of new addresses.
const PreflightTimeout = 10 * time.Second

// check tests the path once, or inspects the client if there is no server.
func (w *Connection) check(ctx context.Context) (err error) {
	if w.group.Plan.ClientOnly() {
		return w.inspectClient(ctx)
	}
	if w.dial, err = w.group.dial(ctx, w.path); err != nil {
		return err
	}
	return w.checkMesh(ctx)
}

// dial returns the address that the client connects to on a path. For a Service it waits until the server is its only
// endpoint.
func (g *Group) dial(ctx context.Context, p result.Path) (netip.AddrPort, error) {
	if !p.Service() {
		return g.Listen, nil
	}
	if g.serviceErr != nil {
		return netip.AddrPort{}, g.serviceErr
	}
	name, address := g.service.Name, g.service.Spec.ClusterIP
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("service %s has the address %q: %w", name, address, err)
	}
	return netip.AddrPortFrom(ip, g.Listen.Port()),
		cluster.AwaitOnlyEndpoint(ctx, g.Cluster.DiscoveryV1(), g.Plan.Namespace, name, g.Listen)
}

// checkConnection makes the client connect to the server as runs will.
func (w *Connection) checkConnection(ctx context.Context) error {
	g, plan := w.group, w.group.Plan
	forServer := preflight.Spec{Role: preflight.Server, Token: preflight.NewToken(), Address: g.Listen,
		Timeout: PreflightTimeout, Sockets: plan.InPod(manifest.Server),
		Capture: plan.Profiles() && plan.InPod(manifest.Client) && plan.InPod(manifest.Server)}
	forClient := forServer
	forClient.Role, forClient.Address, forClient.Sockets = preflight.Client, w.dial, plan.InPod(manifest.Client)
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
			w.Client.Error, g.policyHint(ctx))
	case w.Server.Error != "":
		return fmt.Errorf("%s: %s", plan.HostName(manifest.Server), w.Server.Error)
	case plan.Settings.Network != "" && plan.InPod(manifest.Client):
		return inspection.CheckNetworkRoute(g.Pods[plan.Name(manifest.Client)], plan.Settings.Network,
			w.Server.Remote.Addr())
	case plan.Settings.DefaultNetwork != "" && plan.InPod(manifest.Client):
		return inspection.CheckDefaultRoute(g.Pods[plan.Name(manifest.Client)], plan.Settings.DefaultNetwork, w.Client)
	}
	return nil
}

// inspectClient stores the report of a client without a server, and checks its volume.
func (w *Connection) inspectClient(ctx context.Context) (err error) {
	v := w.group.Volume
	w.Client, err = w.group.Report(ctx, manifest.Client, preflight.Spec{
		Role: preflight.Witness, Timeout: PreflightTimeout, Volume: v.Path(),
	})
	if err == nil && v != nil {
		err = v.Check(w.Client.Volume, w.group.Pods[w.group.Plan.Name(manifest.Client)])
	}
	return err
}

// Report makes the agent of one end carry out a preflight check.
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

// policyHint names NetworkPolicies that may block the traffic.
func (g *Group) policyHint(ctx context.Context) string {
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
