package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// This file opens a site. The functions follow the order of the steps.

// Open opens a site in parts, which are created at the same time, and returns a place in one of the parts for each
// placement.
func (k *kubeTarget) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if ctx.Err() != nil {
		return targets.Site{}, context.Cause(ctx)
	}
	c, err := k.reachForSites(ctx)
	if err != nil {
		return targets.Site{}, err
	}
	// The reason of an earlier lapse does not matter here, only whether others use the cluster now.
	if _, err := c.renewLapsedClaim(ctx); err != nil {
		return targets.Site{}, unavailable{err}
	}
	before := c.cluster.Calls()
	places := make([]targets.Place, len(placements))
	var supported []targets.Placement
	for i, p := range placements {
		if places[i].Err = c.checkPlacement(p); places[i].Err == nil {
			supported = append(supported, p)
		}
	}
	parts, err := c.openParts(ctx, supported)
	if err = errors.Join(c.markUnavailable(ctx, err), c.classifyParts(ctx, parts)); err != nil {
		return targets.Site{}, errors.Join(err, c.removeAfterError(ctx, parts))
	}
	for i, p := range placements {
		if places[i].Err == nil {
			places[i] = c.place(parts, p)
			places[i].Health = c.withClaimHealth(places[i].Health)
		}
	}
	return targets.Site{
		Places: places,
		Close: func(ctx context.Context) error {
			return errors.Join(c.remove(ctx, parts), c.removeFailedRunObjects(ctx, parts...))
		},
		Spent: func() []result.Value { return siteCosts(parts, c.cluster.Calls()-before) },
	}, nil
}

// reachForSites returns the claimed stage, in which sites are opened. After an outage it waits again for the API
// server. An error that concerns the whole cluster is marked as unavailable.
func (k *kubeTarget) reachForSites(ctx context.Context) (*claimed, error) {
	if k.connection != nil {
		k.connection.RetryAfterOutage()
	}
	r, err := k.reach(ctx)
	switch {
	case err == nil:
		return k.claimedStage(r), nil
	case k.connection == nil, errors.Is(ctx.Err(), context.Canceled), errors.Is(err, result.ErrNotSupported),
		!isClusterWide(k.connection, err):
		return nil, err
	}
	return nil, unavailable{err}
}

// openParts opens the parts of a site. If the experiment's namespace is missing or being removed, openParts waits until
// it is gone, creates it again and retries once. An error concerns all parts, and then none exists; the error of a
// single part is in the part.
func (k *claimed) openParts(ctx context.Context, placements []targets.Placement) ([]*part, error) {
	if len(placements) == 0 {
		return nil, nil
	}
	parts, err := k.openPartsOnce(ctx, placements)
	lostNamespace := diagnosis.NamespaceGone(err) || slices.ContainsFunc(parts, (*part).lostNamespace)
	if !k.ownNamespace || !lostNamespace || removeNamespace(ctx, k.cluster, k.namespace) != nil {
		return parts, err
	}
	_ = k.remove(ctx, parts) // needed only for what runs here: the objects went with the namespace
	k.dropAccount()
	k.exists = false
	return k.openPartsOnce(ctx, placements)
}

// openPartsOnce prepares the parts one after another, and then creates them all at the same time.
func (k *claimed) openPartsOnce(ctx context.Context, placements []targets.Placement) ([]*part, error) {
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
	filling := 0
	for _, p := range wanted {
		if p.plan.HasVolume() {
			filling++
		}
	}
	k.storage.SetFilling(filling * max(k.plan.Filling, 1))
	for _, p := range wanted {
		p.err = k.planPart(ctx, p)
	}
	var all sync.WaitGroup
	for _, p := range wanted {
		all.Go(func() { p.createObjects(ctx) })
	}
	all.Wait()
	for _, p := range wanted {
		k.leftovers = k.leftovers || p.err != nil && p.group != nil && (p.group.MayExist || p.group.Volume != nil)
	}
	return parts, nil
}

// chooseNodes chooses the nodes of a part and looks up its storage class. This comes before the namespace is created,
// so that a failure leaves no empty namespace.
func (k *reached) chooseNodes(ctx context.Context, plan *manifest.Blueprint, rotation int) error {
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

// ensureNamespace creates the namespace or uses the given one, and creates the Lease in it. After a success, later
// calls do nothing.
func (k *claimed) ensureNamespace(ctx context.Context) error {
	if k.exists {
		return nil
	}
	k.options.AssignsUsers = cluster.AssignsUsers(ctx, k.cluster)
	if k.options.Namespace != "" {
		k.exists = true
		return k.lease.Create(ctx)
	}
	// If the request gets no answer, the namespace may exist; Close removes it.
	k.ownNamespace, k.restricted = true, !k.onNodes()
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	wanted := manifest.NewNamespace(k.namespace, k.experiment, k.podSecurityLevel(), k.options.NamespaceLabels)
	wanted.Annotations = map[string]string{annotationClaim: k.claimText}
	made, err := k.cluster.CoreV1().Namespaces().Create(whole, wanted, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		k.ownNamespace, k.restricted = false, false
		return fmt.Errorf("%w; or give namespace= one that exists", diagnosis.Explain(err, k.namespace))
	}
	if apierrors.IsAlreadyExists(err) {
		made, err = namespaceNamed(whole, k.cluster, k.namespace)
	}
	if err != nil {
		return diagnosis.Explain(err, k.namespace)
	}
	k.exists, k.namespaceUID = true, made.UID
	return k.lease.Create(whole)
}

// namespaceNamed returns a namespace. It finds the namespace by listing, because a get would need a further right.
func namespaceNamed(ctx context.Context, api kubernetes.Interface, name string) (*corev1.Namespace, error) {
	found, err := api.CoreV1().Namespaces().List(ctx, cluster.ByName(name))
	if err != nil || len(found.Items) == 0 {
		return nil, errors.Join(err, fmt.Errorf("the namespace %s is there, and is not listed", name))
	}
	return &found.Items[0], nil
}

// planPart plans a part, and creates the account of pods that ask the API server, which parts share.
func (k *claimed) planPart(ctx context.Context, p *part) (err error) {
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

// newGroup plans a group, and creates nothing yet.
func (k *reached) newGroup(ctx context.Context, plan *manifest.Blueprint) (_ *site.Group, err error) {
	var v *volumes.Volume
	if plan.HasVolume() {
		if v, err = k.storage.Plan(ctx, plan); err != nil {
			return nil, err
		}
	}
	return &site.Group{
		Cluster: k.cluster, Injector: k.injector, Pin: k.imagePin, Plan: *plan, Volume: v,
		Nodes: k.nodeWatches.StartPeriod(ctx, plan.Nodes[:]...),
	}, nil
}

// newVault plans the Vault of a group, and creates nothing yet.
func (k *reached) newVault(ctx context.Context, g *site.Group) (*site.Vault, error) {
	wanted, client := k.options.Vault, g.Plan.Node(manifest.Client)
	spread := inspection.Spread(k.listed, k.options.NodeConstraints, client, wanted.Replicas)
	if len(spread) == 0 {
		spread = g.Plan.Nodes[:] // without the right to list nodes
	}
	return site.NewVault(ctx, g, wanted, k.vaultStorage, spread)
}

// createObjects creates the objects of a planned part, and sets its errors.
func (p *part) createObjects(ctx context.Context) {
	if p.err != nil || p.group == nil {
		return
	}
	if p.err = p.group.Create(ctx); p.err == nil && p.vault != nil && p.group.Ways[0].Err == nil {
		p.vaultErr = p.vault.Start(ctx)
	}
}

// place returns the place of a placement in one of the parts.
func (k *claimed) place(parts []*part, of targets.Placement) targets.Place {
	p := parts[slices.IndexFunc(parts, func(p *part) bool { return slices.ContainsFunc(p.plan.Placements, of.Equal) })]
	switch {
	case p.err != nil:
		return targets.Place{Err: p.err}
	case p.local != nil:
		return k.localPlace(p)
	}
	w := p.group.Way(of.Path)
	if w.Err != nil {
		return targets.Place{Err: w.Err}
	}
	place := targets.Place{
		Pair: w.Pair(), Facts: w.Facts(), Warnings: w.Warnings(), Health: w.Health,
	}
	switch {
	case of.AsksAPI:
		k.addAPI(&place, p)
	case of.Volume:
		k.addVolume(&place, p.group)
	case of.Application != "" && p.vaultErr != nil:
		return targets.Place{Err: p.vaultErr}
	case of.Application != "":
		k.addVault(&place, p)
	}
	return place
}

// addVolume adds the volume to a place where storage is measured.
func (k *reached) addVolume(place *targets.Place, g *site.Group) {
	place.Volume = k.storage.HostVolume(g.Volume)
	place.Warnings = append(g.Volume.Warnings(), place.Warnings...)
	place.Health = func(ctx context.Context) []string { return append(g.Volume.Health(ctx), g.Health(ctx)...) }
}

// addVault adds a Vault to a place: the one that was deployed for the part, or else the existing one that the options
// name.
func (k *named) addVault(place *targets.Place, p *part) {
	d := p.vault
	if d == nil {
		place.Endpoint, place.Err = k.options.Vault.Endpoint(vault.Here())
		return
	}
	place.Endpoint = d.Endpoint
	place.Facts = append(place.Facts, d.Facts()...)
	place.Warnings = append(place.Warnings, d.Warnings()...)
	place.Health = func(ctx context.Context) []string { return append(d.Health(ctx), p.group.Health(ctx)...) }
}

// siteCosts returns how many pods and API requests a site took, from Open to the end of Close. A watch and a command in
// a pod count as one request each.
func siteCosts(parts []*part, requests int64) []result.Value {
	pods := 0
	for _, p := range parts {
		pods += p.podCount()
	}
	return []result.Value{
		result.NewValue(metric.Named(metric.Pods), float64(pods)),
		result.NewValue(metric.Named(metric.APICalls), float64(requests)),
	}
}
