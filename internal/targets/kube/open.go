package kube

import (
	"context"
	"errors"
	"slices"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Open opens the parts of a site at the same time, and returns a place in one of them for each placement.
func (k *kubeTarget) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if ctx.Err() != nil {
		return targets.Site{}, context.Cause(ctx)
	}
	places := make([]targets.Place, len(placements))
	var supported []targets.Placement
	for i, p := range placements {
		if places[i].Err = k.checkPlacement(p); places[i].Err == nil {
			supported = append(supported, p)
		}
	}
	// The reason of an earlier lapse does not matter here, only whether others use the cluster now.
	if _, err := k.renewLapsedClaim(ctx); err != nil {
		return targets.Site{}, unavailable{err}
	}
	before := k.requests()
	parts, err := k.openParts(ctx, supported)
	if err = errors.Join(k.classify(ctx, err), k.classifyParts(ctx, parts)); err != nil {
		return targets.Site{}, errors.Join(err, k.removeAfterError(ctx, parts))
	}
	for i, p := range placements {
		if places[i].Err == nil {
			places[i] = k.place(parts, p)
			places[i].Health = k.withClaimHealth(places[i].Health)
		}
	}
	return targets.Site{
		Places: places,
		Close: func(ctx context.Context) error {
			return errors.Join(k.remove(ctx, parts), k.removeFailedRunObjects(ctx, parts...))
		},
		Spent: func() []result.Value { return siteCosts(parts, k.requests()-before) },
	}, nil
}

// place returns the place of a placement in one of the parts.
func (k *kubeTarget) place(parts []*part, of targets.Placement) targets.Place {
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
		Pair: w.Pair(), Facts: w.Facts(), Warnings: p.group.Warnings(), Health: p.group.Health,
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
func (k *kubeTarget) addVolume(place *targets.Place, g *site.Group) {
	place.Volume = k.storage.HostVolume(g.Volume)
	place.Warnings = append(g.Volume.Warnings(), place.Warnings...)
	place.Health = func(ctx context.Context) []string { return append(g.Volume.Health(ctx), g.Health(ctx)...) }
}

// addVault adds to a place the Vault that was deployed for the part, or the existing one.
func (k *kubeTarget) addVault(place *targets.Place, p *part) {
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

// Applications returns a Vault that exists, as opposed to one deployed for each block.
func (k *kubeTarget) Applications() map[string]host.Destination {
	return k.options.Vault.Applications(vault.Here())
}

// requests returns the number of requests to the API server so far.
func (k *kubeTarget) requests() int64 {
	if k.cluster == nil {
		return 0
	}
	return k.cluster.Calls()
}

// siteCosts returns the pods and API requests of a site, from Open to the end of Close. A watch and a command in a pod
// count as one request each.
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
