package kube

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
)

// addVault adds the Vault that is asked, which was deployed for the part or is there.
func (k *kubeTarget) addVault(place *target.Place, p *part) {
	d := p.vault
	if d == nil {
		place.Endpoint, place.Err = k.options.Vault.Endpoint(vault.Here())
		return
	}
	place.Endpoint = d.Endpoint
	place.Facts = append(place.Facts, d.Facts()...)
	place.Warnings = append(place.Warnings, inspection.SidecarWarnings(d.Pods)...)
	place.Health = func(ctx context.Context) []string { return append(d.Ailments(), p.group.Health(ctx)...) }
}

// Applications is a Vault that was given, and not deployed for each block.
func (k *kubeTarget) Applications() map[string]host.Destination {
	return k.options.Vault.Applications(vault.Here())
}
