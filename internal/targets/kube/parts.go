package kube

import (
	"context"
	"errors"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// A part of a site is what some of its places share: a group of pods, with a Vault if one is deployed for it, or this
// machine.
type part struct {
	plan     manifest.Blueprint
	err      error // why the part does not exist
	group    *site.Group
	vault    *site.Vault // nil unless one is deployed
	vaultErr error       // why the Vault does not work
	local    *site.Local
}

// openParts opens the parts of a site. If somebody removed the target's namespace, it is created again. An error
// concerns all parts, and then none exists.
func (k *kubeTarget) openParts(ctx context.Context, placements []targets.Placement) ([]*part, error) {
	if len(placements) == 0 {
		return nil, nil
	}
	if k.cluster != nil {
		k.cluster.RetryAfterOutage()
	}
	parts, err := k.tryOpenParts(ctx, placements)
	lostNamespace := diagnosis.NamespaceGone(err) || slices.ContainsFunc(parts, (*part).lostNamespace)
	if !k.ownNamespace || !lostNamespace || removeNamespace(ctx, k.cluster, k.namespace) != nil {
		return parts, err
	}
	_ = k.remove(ctx, parts) // our side only: on the cluster they went with the namespace
	k.dropAccount()
	k.namespace = ""
	return k.tryOpenParts(ctx, placements)
}

// openPart opens the part of one placement.
func (k *kubeTarget) openPart(ctx context.Context, of targets.Placement) (*part, error) {
	if err := k.checkPlacement(of); err != nil {
		return nil, err
	}
	parts, err := k.openParts(ctx, []targets.Placement{of})
	if err != nil {
		return nil, err
	}
	for _, err := range parts[0].errorFields() {
		if *err != nil {
			k.noteUnsupported(parts[0], *err)
			return nil, errors.Join(*err, k.removeAfterError(ctx, parts))
		}
	}
	return parts[0], nil
}

// tryOpenParts prepares the parts one after another, and then creates them all at the same time.
func (k *kubeTarget) tryOpenParts(ctx context.Context, placements []targets.Placement) ([]*part, error) {
	if err := k.survey(ctx); err != nil {
		return nil, err
	}
	var parts, wanted []*part
	for _, group := range manifest.Groups(placements) {
		p := &part{plan: manifest.Blueprint{Experiment: k.experiment, Placements: group}}
		if p.err = k.chooseNodes(ctx, &p.plan, placements[0].Rotation); p.err == nil {
			wanted = append(wanted, p)
		}
		parts = append(parts, p)
	}
	if len(wanted) == 0 {
		return parts, nil
	}
	if err := k.ensureNamespace(ctx); err != nil {
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
		k.leftovers = k.leftovers || p.err != nil && p.group != nil && (p.group.Made || p.group.Volume != nil)
	}
	return parts, nil
}

// chooseNodes chooses the nodes of a part and looks up its storage, before a namespace is created that might stay
// empty.
func (k *kubeTarget) chooseNodes(ctx context.Context, plan *manifest.Blueprint, rotation int) error {
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

// prepare plans a part, and creates what it shares with others.
func (k *kubeTarget) prepare(ctx context.Context, p *part) (err error) {
	asks := p.plan.AsksAPI()
	if asks && k.options.Here {
		p.local, err = k.newLocal(ctx, p.plan.Nodes[0])
		return err
	}
	if asks {
		if err := k.ensureAccount(ctx); err != nil {
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
		p.vault, p.vaultErr = k.newVault(ctx, p.group)
	}
	return nil
}

// newVault plans the Vault of a group, and creates nothing yet.
func (k *kubeTarget) newVault(ctx context.Context, g *site.Group) (*site.Vault, error) {
	wanted, client := k.options.Vault, g.Plan.Node(manifest.Client)
	spread := inspection.Spread(k.listed, k.options.NodeConstraints, client, wanted.Replicas)
	if len(spread) == 0 {
		spread = g.Plan.Nodes[:] // without the right to list nodes
	}
	return site.NewVault(ctx, g, wanted, k.vaultStorage, spread)
}

// newGroup plans a group, and creates nothing yet.
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
		Nodes: k.nodeWatches.StartPeriod(ctx, plan.Nodes[:]...),
	}, nil
}

// make creates a part that is planned.
func (p *part) make(ctx context.Context) {
	if p.err != nil || p.group == nil {
		return
	}
	if p.err = p.group.Make(ctx); p.err == nil && p.vault != nil && p.group.Ways[0].Err == nil {
		p.vaultErr = p.vault.Start(ctx)
	}
}

// errorFields returns pointers to all error fields of a part and its paths.
func (p *part) errorFields() []*error {
	list := []*error{&p.err, &p.vaultErr}
	if p.group != nil {
		for _, w := range p.group.Ways {
			list = append(list, &w.Err)
		}
	}
	return list
}

// lostNamespace reports whether the namespace of a part was removed.
func (p *part) lostNamespace() bool {
	return slices.ContainsFunc(p.errorFields(), func(err *error) bool { return diagnosis.NamespaceGone(*err) })
}

// podCount returns the number of pods that ran.
func (p *part) podCount() int {
	n := 0
	if p.group != nil {
		n += len(p.group.Pods)
	}
	if p.vault != nil {
		n += len(p.vault.Pods)
	}
	return n
}

// remove removes parts at the same time, and notes whether something may be left.
func (k *kubeTarget) remove(ctx context.Context, parts []*part) error {
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() { errs[i] = p.remove(ctx) })
	}
	all.Wait()
	err := errors.Join(errs...)
	k.leftovers = k.leftovers || err != nil
	return err
}

// removeAfterError is remove after a failure, even if ctx has ended.
func (k *kubeTarget) removeAfterError(ctx context.Context, parts []*part) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CleanupTime)
	defer cancel()
	return k.remove(ctx, parts)
}

// remove removes a part. A part with an error has removed itself.
func (p *part) remove(ctx context.Context) error {
	switch {
	case p.err != nil:
		return nil
	case p.local != nil:
		p.local.Remove()
		return nil
	case p.vault != nil:
		return errors.Join(p.group.Remove(ctx), p.vault.Remove(ctx))
	}
	return p.group.Remove(ctx)
}
