package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// inject copies the agent into all pods at the same time.
func (g *Group) inject(ctx context.Context) error {
	var both sync.WaitGroup
	var errs [2]error
	var sent [2]payload
	for i, r := range g.Plan.Roles() {
		both.Go(func() {
			run := g.shell(r)
			sent[i], errs[i] = g.Injector.payloadFor(ctx, g.Plan.Archs[i], run)
			if errs[i] == nil {
				errs[i] = sent[i].copyInto(ctx, run)
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", g.Plan.HostName(r), errs[i])
			}
		})
	}
	both.Wait()
	g.payloads = sent
	return errors.Join(errs[:]...)
}

// agentFacts returns facts about the agent's program and how it was copied.
func (g *Group) agentFacts() []result.Fact {
	if !g.Plan.Settings.Inject {
		return []result.Fact{{Name: "agent", Value: "of the image"}}
	}
	each := func(of func(payload) string) string {
		a, b := of(g.payloads[0]), of(g.payloads[1])
		if a == b || len(g.Plan.Roles()) == 1 {
			return a
		}
		return "client " + a + ", server " + b
	}
	return []result.Fact{
		{Name: "agent", Value: "injected"},
		{Name: "agent-digest", Value: each(func(p payload) string { return "sha256:" + p.digest })},
		{Name: "agent-copy", Value: each(payload.String)},
	}
}

// Warnings returns what a reader of the pods' results should know.
func (g *Group) Warnings() []result.Warning {
	var list []result.Warning
	if g.Plan.Settings.EnrolledIn().Name == "" { // else the user wants what a mesh adds to be measured
		list = inspection.SidecarWarnings(g.Pods)
	}
	if limit := g.Plan.Settings.Pods.CPULimit(); limit != "" {
		list = append(list, result.Warning{Code: result.CPULimitSet, Text: "the pods have a CPU limit of " + limit +
			" by config=: it is part of what was measured"})
	}
	return list
}

// Pair returns the hosts of the path, and how the client reaches the server.
func (w *Connection) Pair() host.Pair {
	g := w.group
	pair := host.Pair{
		Client: g.Host(manifest.Client), Shared: w.shared(), CPULimit: g.Plan.Settings.Pods.CPULimit(),
	}
	if !g.Plan.ClientOnly() {
		pair.Server, pair.Dial, pair.Listen, pair.MTU = g.Host(manifest.Server), w.dial, g.Listen, w.mtu()
	}
	return pair
}

// mtu returns the smaller MTU of both ends in bytes. It ignores an unknown one (0).
func (w *Connection) mtu() int {
	if w.Client.MTU == 0 || w.Server.MTU == 0 {
		return max(w.Client.MTU, w.Server.MTU)
	}
	return min(w.Client.MTU, w.Server.MTU)
}

// shared reports whether both ends use the CPUs of one machine. Two nodes may be the same machine; their boot IDs are
// equal then.
func (w *Connection) shared() bool {
	plan := w.group.Plan
	if plan.ClientOnly() || plan.Nodes[0] == plan.Nodes[1] {
		return true
	}
	a, b := result.FactOf(w.Client.Facts, "boot-id"), result.FactOf(w.Server.Facts, "boot-id")
	return a == b && a != "" && a != result.Unknown
}

// Facts returns the facts about the hosts and the connection of the path.
func (w *Connection) Facts() []result.Fact {
	g, plan := w.group, w.group.Plan
	image := []result.Fact{
		{Name: "image", Value: plan.Settings.Image},
		{Name: "image-digest", Value: g.digest()},
		inspection.SidecarFact(g.Pods),
		{Name: "agent-version", Value: w.Client.Program},
		{Name: "cpu-limit", Value: cmp.Or(plan.Settings.Pods.CPULimit(), "none")},
	}
	client := []result.Fact{{Name: "client", Value: plan.HostName(manifest.Client)}}
	if plan.ClientOnly() {
		return slices.Concat(client, image, g.Volume.Facts(), g.agentFacts())
	}
	mtu := result.Unknown
	if w.mtu() > 0 {
		mtu = strconv.Itoa(w.mtu())
	}
	own, _ := g.address(manifest.Client) // invalid if unknown
	return slices.Concat(client, []result.Fact{
		{Name: "server", Value: plan.HostName(manifest.Server)},
		{Name: "dial", Value: w.dial.String()},
		{Name: "mtu", Value: mtu},
		{Name: "congestion-control", Value: cmp.Or(w.Client.Congestion, result.Unknown)},
		{Name: "client-offloads", Value: cmp.Or(w.Client.Device.Offloads, result.Unknown)},
		{Name: "server-offloads", Value: cmp.Or(w.Server.Device.Offloads, result.Unknown)},
		{Name: "source-address", Value: sourceOf(own, w.Server.Remote.Addr())},
	}, w.meshFacts(), image, g.agentFacts())
}

// sourceOf returns whether the client's address, own, is translated on the way to the server, which saw the address
// seen.
func sourceOf(own, seen netip.Addr) string {
	switch {
	case !own.IsValid() || !seen.IsValid():
		return result.Unknown
	case own == seen:
		return "preserved"
	}
	return "translated to " + seen.String()
}

// digest returns the image's digest as reported by the runtimes, or both if they differ.
func (g *Group) digest() string {
	var found [2]string
	for i, r := range g.Plan.Roles() {
		found[i] = cmp.Or(inspection.ImageOf(g.Pods[g.Plan.Name(r)], g.Plan.Archs[i]).Digest, result.Unknown)
	}
	if found[0] != found[1] && !g.Plan.ClientOnly() {
		return "client " + found[0] + ", server " + found[1]
	}
	return found[0]
}
