package kube

import (
	"context"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/access"
)

// Allowed asks the API server for each right that a path takes in addition to those of all runs, and names those that
// the user of the kubeconfig does not have.
func (k *kubeTarget) Allowed(ctx context.Context, p target.Placement) error {
	if err := k.survey(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	missing, err := k.lacking(ctx, p)
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.New(access.LackText(missing))
}

// lacking names the rights that a placement takes in addition to those of all runs, and that the user does not have.
func (k *kubeTarget) lacking(ctx context.Context, p target.Placement) ([]string, error) {
	return access.Lacking(ctx, k.cluster, k.options.need(), p, k.calls())
}

// need is what of the options decides over rights.
func (o options) need() access.Need {
	return access.Need{Namespace: o.Namespace, Nodes: [2]string{o.Client, o.Server}, FromHere: o.Here,
		DeploysVault: o.Vault.Deploy}
}

// RBAC is what a user needs to measure a target, as manifests: in one namespace, or wide, for namespaces that are made
// and removed.
func RBAC(spec target.Spec, wide bool) (string, error) {
	o, err := parse(spec)
	if err != nil {
		return "", err
	}
	if wide && o.Namespace != "" {
		return "", fmt.Errorf("%w: %s: namespace=%s takes no rights in the whole cluster; "+
			"leave it out, or print those in it with --rbac", target.ErrSpec, spec.Label(), o.Namespace)
	}
	return access.Manifests(o.need(), wide)
}
