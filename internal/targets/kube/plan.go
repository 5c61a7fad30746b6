package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	deployed "github.com/knotmeter/knotmeter/internal/targets/kube/vault"
)

// What is planned decides what is asked for: no right and no level of Pod Security is wider than its cases take.

// planned are the placements that are to come: any, where nothing was planned.
func (k *kubeTarget) planned() []targets.Placement {
	if k.plan != nil {
		return k.plan.Placements
	}
	var all []targets.Placement
	for _, p := range targets.Paths() {
		all = append(all, targets.Placement{Path: p})
	}
	for _, c := range cluster.AllCalls() {
		all = append(all, targets.Placement{Call: c})
	}
	return all
}

// onNodes says whether there are to be pods in the network of their node.
func (k *kubeTarget) onNodes() bool {
	onNode := func(p targets.Placement) bool { return nodePath(p.Path) }
	return k.options.HostNetwork && slices.ContainsFunc(k.planned(), onNode)
}

// level is how much of a node pods are to have, as Pod Security admission names it.
func (k *kubeTarget) level() string {
	if k.onNodes() || k.profiles() {
		return manifest.LevelPrivileged
	}
	return manifest.LevelRestricted
}

// settleOn takes a plan. Where no run looks at nodes, the pods by which the cluster is seen do not either, since their
// namespace has no place for privileged ones.
func (k *kubeTarget) settleOn(p targets.Plan) {
	k.plan = &p
	k.options.Profile = k.profiles()
}

// profiles says whether there are to be pods that look at their nodes.
func (k *kubeTarget) profiles() bool {
	onPath := func(p targets.Placement) bool { return p.Path != "" }
	return k.options.Profile && slices.ContainsFunc(k.planned(), onPath)
}

// Privileges are those of profile=yes.
func (k *kubeTarget) Privileges() string {
	if !k.profiles() {
		return ""
	}
	return "pods of runs are privileged and see all processes of their nodes, to sample the nodes' CPUs and to read " +
		"their counters (profile=yes)"
}

// nodePath says whether an end of a path is in the network of its node.
func nodePath(p targets.Path) bool { return p != "" && (!p.ClientPod() || !p.ServerPod()) }

// calls are what is to be asked of the API server.
func (k *kubeTarget) calls() []targets.Call {
	var list []targets.Call
	for _, p := range k.planned() {
		if p.AsksAPI() {
			list = append(list, p.Call)
		}
	}
	return list
}

// look finds out which of the programs that are planned pods do not have. Where that is not clear, runs will tell.
func (k *kubeTarget) look(ctx context.Context, in host.Host) {
	for _, p := range k.planned() {
		if _, known := k.lacks[p.Program]; known || p.Program == "" {
			continue
		}
		err := in.Run(ctx, host.Cmd{Args: []string{p.Program, "--version"}})
		k.lacks[p.Program] = errors.Is(err, host.ErrNoCommand)
	}
}

// equipped is nil unless pods are known to lack a program.
func (k *kubeTarget) equipped(program string) error {
	if k.lacks[program] {
		return result.NotSupported(host.Missing(program, "the pods of the image "+k.options.Image))
	}
	return nil
}

// Allowed asks the API server for each right that a path takes in addition to those of all runs, and names those that
// the user of the kubeconfig does not have.
func (k *kubeTarget) Allowed(ctx context.Context, p targets.Placement) error {
	if err := k.survey(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	missing, err := k.lacking(ctx, p)
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.New(cluster.LackText(missing))
}

// lacking names the rights that a placement takes in addition to those of all runs, and that the user does not have.
func (k *kubeTarget) lacking(ctx context.Context, p targets.Placement) ([]string, error) {
	return cluster.Lacking(ctx, k.cluster, k.options.need(), p, k.calls())
}

// need is what of the options decides over rights.
func (o options) need() cluster.Need {
	return cluster.Need{Namespace: o.Namespace, Nodes: [2]string{o.Client, o.Server}, FromHere: o.Here,
		DeploysVault: o.Vault.Deploy, VaultVolumes: o.Vault.StorageClass != "", DefaultNetwork: o.DefaultNetwork,
		NoClaims: o.Volume.Root()}
}

// vaultVolume is what the volume of each replica of a Vault is to be.
func (o options) vaultVolume() manifest.Volume { return deployed.VolumeOf(o.Vault, o.Volume.Size) }

// RBAC is what a user needs to measure a target, as manifests: in one namespace, or wide, for namespaces that are made
// and removed.
func RBAC(spec targets.Spec, wide bool) (string, error) {
	o, err := parse(spec)
	if err != nil {
		return "", err
	}
	if wide && o.Namespace != "" {
		return "", fmt.Errorf("%w: %s: namespace=%s takes no rights in the whole cluster; "+
			"leave it out, or print those in it with --rbac", targets.ErrSpec, spec.Label(), o.Namespace)
	}
	return cluster.Manifests(o.need(), wide)
}
