package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target/kube/injection"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// inject puts the agent into the pods of a site.
func (s *Site) inject(ctx context.Context) error {
	var both sync.WaitGroup
	var errs [2]error
	var sent [2]injection.Parcel
	for i, r := range s.Plan.Roles() {
		both.Go(func() {
			run := s.shell(r)
			sent[i], errs[i] = s.Injector.ParcelFor(ctx, s.Plan.Archs[i], run)
			if errs[i] == nil {
				errs[i] = sent[i].CopyInto(ctx, run)
			}
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", s.Plan.HostName(r), errs[i])
			}
		})
	}
	both.Wait()
	s.sent = sent
	return errors.Join(errs[:]...)
}

// agentFacts are about the agent's program, where it was copied.
func (s *Site) agentFacts() []result.Fact {
	if !s.Plan.Settings.Inject {
		return []result.Fact{{Name: "agent", Value: "of the image"}}
	}
	each := func(of func(injection.Parcel) string) string {
		a, b := of(s.sent[0]), of(s.sent[1])
		if a == b || len(s.Plan.Roles()) == 1 {
			return a
		}
		return "client " + a + ", server " + b
	}
	return []result.Fact{
		{Name: "agent", Value: "injected"},
		{Name: "agent-digest", Value: each(func(p injection.Parcel) string { return "sha256:" + p.Digest })},
		{Name: "agent-copy", Value: each(injection.Parcel.Words)},
	}
}

// MTU is the smaller of what both ends have for the connection.
func (s *Site) MTU() int {
	if s.Client.MTU == 0 || s.Server.MTU == 0 {
		return max(s.Client.MTU, s.Server.MTU)
	}
	return min(s.Client.MTU, s.Server.MTU)
}

// Shared says whether both ends use the CPUs of one machine; two nodes may be one machine too.
func (s *Site) Shared() bool {
	if s.Plan.Alone() || s.Plan.Nodes[0] == s.Plan.Nodes[1] {
		return true
	}
	a, b := inspection.FactOf(s.Client, "boot-id"), inspection.FactOf(s.Server, "boot-id")
	return a == b && a != result.Unknown
}

// Facts are those of this site.
func (s *Site) Facts() []result.Fact {
	if s.Plan.Alone() {
		return slices.Concat(s.ownFacts(), s.Volume.Facts(), s.agentFacts())
	}
	source := "preserved"
	if address, err := s.address(manifest.Client); err != nil || s.Server.Peer != address {
		source = "translated to " + s.Server.Peer.String()
	}
	facts := []result.Fact{
		{Name: "client", Value: s.Plan.HostName(manifest.Client)}, {Name: "server", Value: s.Plan.HostName(manifest.Server)},
		{Name: "dial", Value: s.Dial.String()},
		{Name: "mtu", Value: inspection.Known(strconv.Itoa(s.MTU()), s.MTU() > 0)},
		{Name: "congestion-control", Value: inspection.Known(s.Client.Congestion, s.Client.Congestion != "")},
		{Name: "client-offloads", Value: inspection.Known(s.Client.Device.Offloads, s.Client.Device.Offloads != "")},
		{Name: "server-offloads", Value: inspection.Known(s.Server.Device.Offloads, s.Server.Device.Offloads != "")},
		{Name: "source-address", Value: source},
		{Name: "image", Value: s.Plan.Settings.Image},
		{Name: "image-digest", Value: s.digest()},
		inspection.SidecarFact(s.Pods),
		{Name: "agent-version", Value: s.Client.Program},
	}
	return append(facts, s.agentFacts()...)
}

// ownFacts are those of a site with one pod.
func (s *Site) ownFacts() []result.Fact {
	return []result.Fact{
		{Name: "client", Value: s.Plan.HostName(manifest.Client)},
		{Name: "image", Value: s.Plan.Settings.Image},
		{Name: "image-digest", Value: s.digest()},
		inspection.SidecarFact(s.Pods),
		{Name: "agent-version", Value: s.Client.Program},
	}
}

// digest is what the runtimes say that the image is, one for each if they differ.
func (s *Site) digest() string {
	var found [2]string
	for i, r := range s.Plan.Roles() {
		id := inspection.ImageOf(s.Pods[s.Plan.Name(r)], s.Plan.Archs[i]).Digest
		found[i] = inspection.Known(id, id != "")
	}
	if found[0] != found[1] && !s.Plan.Alone() {
		return "client " + found[0] + ", server " + found[1]
	}
	return found[0]
}

// Spent is what the run took of the cluster, from the making of its places to their end. A watch is one request,
// however long it lasts, and so is a command in a pod.
func (s *Site) Spent() []result.Value {
	return []result.Value{
		result.NewValue(metric.Named(metric.Pods), float64(len(s.Pods))),
		result.NewValue(metric.Named(metric.APICalls), float64(s.Cluster.Calls()-s.calls)),
	}
}
