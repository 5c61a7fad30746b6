package kube

import (
	"context"
	"errors"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
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

// Vault is where requests to Vault go; nowhere if one is deployed for each block.
func (k *kubeTarget) Vault() host.Destination { return k.options.Vault.Destination(vault.Here()) }

// supportsVault says what of the options about Vault can't be, as far as that is known here.
func (k *kubeTarget) supportsVault(p target.Placement) error {
	if !p.Vault || k.options.Vault.Deploy {
		return nil
	}
	_, err := k.options.Vault.Endpoint(vault.Here())
	if err == nil || errors.Is(err, result.ErrNotSupported) {
		return err
	}
	return result.NotSupported(err.Error())
}
