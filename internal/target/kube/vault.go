package kube

import (
	"context"
	"errors"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/site"
	deployed "github.com/knotmeter/knotmeter/internal/target/kube/vault"
)

// openApp makes a pod from which an application is asked, and where Vault is asked and is to be deployed, that one too.
func (k *kubeTarget) openApp(ctx context.Context, p target.Placement) (target.Single, error) {
	var e host.Endpoint
	if p.Vault && !k.options.Vault.Deploy {
		var err error
		if e, err = k.options.Vault.Endpoint(vault.Here()); err != nil {
			return target.Single{}, err
		}
	}
	s, err := k.open(ctx, p)
	if err != nil {
		return target.Single{}, k.judge(ctx, err)
	}
	open := target.Single{Spent: s.Spent, Close: k.closing(s.Remove), Place: target.Place{
		Pair:  host.Pair{Client: s.Host(manifest.Client), Shared: true, Endpoint: e},
		Facts: s.Facts(), Warnings: inspection.SidecarWarnings(s.Pods), Health: s.Health,
	}}
	if p.Vault && k.options.Vault.Deploy {
		err = k.addVault(ctx, s, &open)
	}
	return open, err
}

// addVault deploys a Vault beside the client of a site. After an error nothing of either is left.
func (k *kubeTarget) addVault(ctx context.Context, s *site.Site, open *target.Single) error {
	d := deployed.New(s, k.options.Vault)
	err := d.Raise(ctx)
	removeSite, health := open.Close, open.Health
	removeVault := k.closing(d.Remove)
	open.Close = func(ctx context.Context) error { return errors.Join(removeVault(ctx), removeSite(ctx)) }
	if err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CleanupTime)
		defer cancel()
		return errors.Join(k.judge(ctx, err), open.Close(cleanup))
	}
	open.Endpoint = d.Endpoint
	open.Facts = append(open.Facts, d.Facts()...)
	open.Warnings = append(open.Warnings, inspection.SidecarWarnings(d.Pods)...)
	open.Health = func(ctx context.Context) []string { return append(d.Ailments(), health(ctx)...) }
	open.Spent = func() []result.Value {
		list := s.Spent()
		for i := range list {
			if list[i].Metric == metric.Pods {
				list[i].Number += float64(len(d.Pods))
			}
		}
		return list
	}
	return nil
}

// Vault is where requests to Vault go; nowhere if one is deployed for each run.
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
