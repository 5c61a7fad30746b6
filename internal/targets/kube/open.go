package kube

import (
	"context"
	"errors"
	"slices"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// Open makes the parts of a site at the same time, and of each placement a place in one of them.
func (k *kubeTarget) Open(ctx context.Context, placements []targets.Placement) (targets.Site, error) {
	if ctx.Err() != nil {
		return targets.Site{}, context.Cause(ctx)
	}
	places := make([]targets.Place, len(placements))
	var offered []targets.Placement
	for i, p := range placements {
		if places[i].Err = k.offers(p); places[i].Err == nil {
			offered = append(offered, p)
		}
	}
	// Whatever lapsed before, only who is there now counts.
	if _, err := k.lapse(ctx); err != nil {
		return targets.Site{}, absent{err}
	}
	before := k.requests()
	parts, err := k.parts(ctx, offered)
	if err = errors.Join(k.judge(ctx, err), k.judgeParts(ctx, parts)); err != nil {
		return targets.Site{}, errors.Join(err, k.removeLater(ctx, parts))
	}
	for i, p := range placements {
		if places[i].Err == nil {
			places[i] = k.place(parts, p)
			places[i].Health = k.held(places[i].Health)
		}
	}
	return targets.Site{
		Places: places,
		Close:  func(ctx context.Context) error { return errors.Join(k.remove(ctx, parts), k.sweep(ctx, parts...)) },
		Spent:  func() []result.Value { return spent(parts, k.requests()-before) },
	}, nil
}

// place is that of a placement in one of the parts.
func (k *kubeTarget) place(parts []*part, of targets.Placement) targets.Place {
	p := parts[slices.IndexFunc(parts, func(p *part) bool { return slices.Contains(p.plan.Placements, of) })]
	switch {
	case p.err != nil:
		return targets.Place{Err: p.err}
	case p.here != nil:
		return k.placeHere(p)
	}
	w := p.group.Way(of.Path)
	if w.Err != nil {
		return targets.Place{Err: w.Err}
	}
	place := targets.Place{
		Pair: w.Pair(), Facts: w.Facts(), Warnings: p.group.Warnings(), Health: p.group.Health,
	}
	switch {
	case of.AsksAPI():
		k.addAPI(&place, p)
	case of.Volume:
		k.addVolume(&place, p.group)
	case of.Application != "" && p.noVault != nil:
		return targets.Place{Err: p.noVault}
	case of.Application != "":
		k.addVault(&place, p)
	}
	return place
}

// addVolume adds what storage is measured on.
func (k *kubeTarget) addVolume(place *targets.Place, g *site.Group) {
	place.Volume = k.storage.HostVolume(g.Volume)
	place.Warnings = append(g.Volume.Warnings(), place.Warnings...)
	place.Health = func(ctx context.Context) []string { return append(g.Volume.Health(ctx), g.Health(ctx)...) }
}

// addVault adds the Vault that is asked, which was deployed for the part or is there.
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

// Applications is a Vault that was given, and not deployed for each block.
func (k *kubeTarget) Applications() map[string]host.Destination {
	return k.options.Vault.Applications(vault.Here())
}

// requests are those to the API server so far.
func (k *kubeTarget) requests() int64 {
	if k.cluster == nil {
		return 0
	}
	return k.cluster.Calls()
}

// spent is what a site took of the cluster, from its Open to the end of its Close. A watch is one request, however long
// it lasts, and so is a command in a pod.
func spent(parts []*part, requests int64) []result.Value {
	pods := 0
	for _, p := range parts {
		pods += p.pods()
	}
	return []result.Value{
		result.NewValue(metric.Named(metric.Pods), float64(pods)),
		result.NewValue(metric.Named(metric.APICalls), float64(requests)),
	}
}
