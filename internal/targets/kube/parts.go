package kube

import (
	"context"
	"errors"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	deployed "github.com/knotmeter/knotmeter/internal/targets/kube/vault"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// A part of a site is what some of its places share: a group of pods with what is deployed for it, or this machine.
type part struct {
	plan    manifest.Blueprint
	err     error // why there is no such part
	group   *site.Group
	vault   *deployed.Deployment // nil if none is wanted
	noVault error                // why it does not work
	here    *site.Here
}

// parts makes those of a site, in a namespace that is made again if somebody removed it. An error is about all of them,
// and then there are none.
func (k *kubeTarget) parts(ctx context.Context, placements []targets.Placement) ([]*part, error) {
	if len(placements) == 0 {
		return nil, nil
	}
	if k.cluster != nil {
		k.cluster.Hope()
	}
	parts, err := k.assemble(ctx, placements)
	lostNamespace := diagnosis.NamespaceGone(err) || slices.ContainsFunc(parts, (*part).lostNamespace)
	if !k.own || !lostNamespace || cleanup.RemoveNamespace(ctx, k.cluster, k.namespace) != nil {
		return parts, err
	}
	_ = k.remove(ctx, parts) // what is left of them here: there, they have gone with the namespace
	k.dismiss()
	k.namespace = ""
	return k.assemble(ctx, placements)
}

// only makes the part of one placement, or nothing.
func (k *kubeTarget) only(ctx context.Context, of targets.Placement) (*part, error) {
	if err := k.offers(of); err != nil {
		return nil, err
	}
	parts, err := k.parts(ctx, []targets.Placement{of})
	if err != nil {
		return nil, err
	}
	for _, err := range parts[0].errs() {
		if *err != nil {
			k.learn(parts[0], *err)
			return nil, errors.Join(*err, k.removeLater(ctx, parts))
		}
	}
	return parts[0], nil
}

// assemble makes what is known of the parts one after the other, and then all of them at the same time.
func (k *kubeTarget) assemble(ctx context.Context, placements []targets.Placement) ([]*part, error) {
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	var parts, wanted []*part
	for _, group := range manifest.Groups(placements) {
		p := &part{plan: manifest.Blueprint{Experiment: k.experiment, Placements: group}}
		if p.err = k.locate(ctx, &p.plan, placements[0].Rotation); p.err == nil {
			wanted = append(wanted, p)
		}
		parts = append(parts, p)
	}
	if len(wanted) == 0 {
		return parts, nil
	}
	if err := k.enter(ctx); err != nil {
		return nil, err
	}
	for _, p := range wanted {
		p.err = k.prepare(ctx, p)
	}
	var all sync.WaitGroup
	for _, p := range wanted {
		all.Go(func() { p.make(ctx) })
	}
	all.Wait()
	for _, p := range wanted {
		k.unclean = k.unclean || p.err != nil && p.group != nil && (p.group.Made || p.group.Volume != nil)
	}
	return parts, nil
}

// locate chooses the nodes of a part, and looks what it is for that is there, before there is a namespace that nothing
// would be in.
func (k *kubeTarget) locate(ctx context.Context, plan *manifest.Blueprint, rotation int) error {
	nodes, err := k.nodes.At(plan.OnTwoNodes(), rotation)
	if err != nil {
		return err
	}
	plan.Nodes, plan.Archs = [2]string{nodes[0].Name, nodes[1].Name}, [2]string{nodes[0].Arch, nodes[1].Arch}
	if plan.HasVolume() {
		return k.storage.LookUp(ctx)
	}
	return nil
}

// prepare sees to what a part needs that it shares with others, and plans it.
func (k *kubeTarget) prepare(ctx context.Context, p *part) (err error) {
	asks := p.plan.AsksAPI()
	if asks && k.options.Here {
		p.here, err = k.newHere(ctx, p.plan.Nodes[0])
		return err
	}
	if asks {
		if err := k.admit(ctx); err != nil {
			return err
		}
		p.plan.Account, p.plan.Owners = k.account.Name, []metav1.OwnerReference{k.account.Owner}
	}
	k.groups++
	p.plan.Settings, p.plan.Namespace, p.plan.Site = k.options.Settings, k.namespace, k.groups
	if p.group, err = k.newGroup(ctx, &p.plan); err != nil {
		return err
	}
	asksVault := func(of targets.Placement) bool { return of.Application == vault.Name }
	if k.options.Vault.Deploy && slices.ContainsFunc(p.plan.Placements, asksVault) {
		p.vault, p.noVault = k.newVault(ctx, p.group)
	}
	return nil
}

// newVault is the Vault of a group, of which nothing is made yet.
func (k *kubeTarget) newVault(ctx context.Context, g *site.Group) (*deployed.Deployment, error) {
	wanted, client := k.options.Vault, g.Plan.Node(manifest.Client)
	spread := inspection.Spread(k.listed, k.options.NodeConstraints, client, wanted.Replicas)
	if len(spread) == 0 {
		spread = g.Plan.Nodes[:] // nodes may not be listed
	}
	return deployed.New(ctx, g, wanted, k.vaultStorage, spread)
}

// newGroup is what a plan says, of which nothing is made yet.
func (k *kubeTarget) newGroup(ctx context.Context, plan *manifest.Blueprint) (_ *site.Group, err error) {
	var v *volumes.Volume
	if plan.HasVolume() {
		if v, err = k.storage.Plan(ctx, plan); err != nil {
			return nil, err
		}
	}
	if k.nodeWatches == nil {
		k.nodeWatches = cluster.NewNodes(k.cluster.CoreV1().Nodes())
	}
	return &site.Group{
		Cluster: k.cluster, Injector: k.injector, Pin: k.pin, Plan: *plan, Volume: v,
		Nodes: k.nodeWatches.From(ctx, plan.Nodes[:]...),
	}, nil
}

// make makes a part that is planned.
func (p *part) make(ctx context.Context) {
	if p.err != nil || p.group == nil {
		return
	}
	if p.err = p.group.Make(ctx); p.err == nil && p.vault != nil && p.group.Ways[0].Err == nil {
		p.noVault = p.vault.Raise(ctx)
	}
}

// errs are where it is written what went wrong with a part.
func (p *part) errs() []*error {
	list := []*error{&p.err, &p.noVault}
	if p.group != nil {
		for _, w := range p.group.Ways {
			list = append(list, &w.Err)
		}
	}
	return list
}

// lostNamespace says whether the namespace of a part was removed.
func (p *part) lostNamespace() bool {
	return slices.ContainsFunc(p.errs(), func(err *error) bool { return diagnosis.NamespaceGone(*err) })
}

// pods is how many there were.
func (p *part) pods() int {
	n := 0
	if p.group != nil {
		n += len(p.group.Pods)
	}
	if p.vault != nil {
		n += len(p.vault.Pods)
	}
	return n
}

// remove removes the parts that there are, all at the same time, and remembers if something of them may be left.
func (k *kubeTarget) remove(ctx context.Context, parts []*part) error {
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() { errs[i] = p.remove(ctx) })
	}
	all.Wait()
	err := errors.Join(errs...)
	k.unclean = k.unclean || err != nil
	return err
}

// removeLater is remove after something went wrong, whatever became of ctx.
func (k *kubeTarget) removeLater(ctx context.Context, parts []*part) error {
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CleanupTime)
	defer cancel()
	return k.remove(cleanup, parts)
}

// remove removes a part. One that could not be made has removed itself.
func (p *part) remove(ctx context.Context) error {
	switch {
	case p.err != nil:
		return nil
	case p.here != nil:
		p.here.Remove()
		return nil
	case p.vault != nil:
		return errors.Join(p.group.Remove(ctx), p.vault.Remove(ctx))
	}
	return p.group.Remove(ctx)
}
