//go:build linux

package labtarget

import (
	"context"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// splitCPUs splits the CPUs that this process may use into a first half for clients and a second half for servers. A
// single CPU is used for both.
func splitCPUs() (client, server []int, err error) {
	allowed, err := machine.AllowedCPUs()
	if err != nil || len(allowed) < 2 {
		return allowed, allowed, err
	}
	return allowed[:len(allowed)/2], allowed[len(allowed)/2:], nil
}

// Facts returns the facts of the target's options, of this machine, and of a site that is opened for them.
func (l *labTarget) Facts(ctx context.Context) ([]result.Fact, error) {
	t := l.topology
	family, limit := "4", "unlimited"
	if t.IPv6 {
		family = "6"
	}
	if t.Rate > 0 {
		limit = unit.Format(float64(t.Rate), unit.BitPerSecond)
	}
	privilege := "root"
	if l.config.Unprivileged() {
		privilege = "user namespace"
	}
	facts := []result.Fact{
		{Name: "kind", Value: "lab"},
		{Name: "datapath", Value: l.datapath.Name()},
		{Name: "as-used-by", Value: l.datapath.About()},
		{Name: "services", Value: t.Services},
		{Name: "nodes", Value: strconv.Itoa(t.Nodes)},
		{Name: "underlay-mtu", Value: strconv.Itoa(t.MTU)},
		{Name: "pod-mtu", Value: strconv.Itoa(l.podMTU)},
		{Name: "underlay-rate", Value: limit},
		{Name: "ip", Value: family},
		{Name: "privilege", Value: privilege},
	}
	facts = append(facts, machine.Facts()...)
	facts = append(facts, result.Fact{Name: "virtualisation", Value: machine.Virtualisation()})
	if l.storage != nil {
		storage, err := l.storage.Facts(ctx)
		if err != nil {
			return nil, err
		}
		have := func(f result.Fact) bool {
			return slices.ContainsFunc(facts, func(o result.Fact) bool { return o.Name == f.Name })
		}
		facts = append(facts, slices.DeleteFunc(storage, have)...)
	}
	return append(facts, l.siteFacts(ctx)...), nil
}

// siteFacts returns the facts that only a site has. They are unknown if no site can be opened.
func (l *labTarget) siteFacts(ctx context.Context) []result.Fact {
	own := []string{"client", "server", "dial", "mtu"}
	paths := result.Paths()
	slices.Reverse(paths)
	i := slices.IndexFunc(paths, func(p result.Path) bool {
		return p.Other() && l.Supports(targets.Placement{Path: p}) == nil
	})
	if i >= 0 {
		if site, err := targets.OpenOne(ctx, l, targets.Placement{Path: paths[i]}); err == nil {
			_ = site.Close(ctx)
			return slices.DeleteFunc(site.Facts, func(f result.Fact) bool { return slices.Contains(own, f.Name) })
		}
	}
	return []result.Fact{
		{Name: "congestion-control", Value: result.Unknown}, {Name: "client-offloads", Value: result.Unknown},
		{Name: "server-offloads", Value: result.Unknown}, {Name: "underlay-header", Value: result.Unknown},
		{Name: "encapsulation", Value: result.Unknown}, {Name: "encryption", Value: result.Unknown},
		{Name: "path-mtu", Value: result.Unknown},
	}
}
