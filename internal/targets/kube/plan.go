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
	"github.com/knotmeter/knotmeter/internal/targets/kube/product"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// The plan determines rights and Pod Security levels: neither is wider than the planned cases need.

// onNodes reports whether some pods will be in the network of their node.
func (k *named) onNodes() bool {
	onNode := func(p targets.Placement) bool { return nodePath(p.Path) }
	return k.options.HostNetwork && slices.ContainsFunc(k.plan.Placements, onNode)
}

// podSecurityLevel returns the Pod Security level that the pods need. A mesh's init containers, which redirect the
// traffic of pods to a sidecar, need NET_ADMIN.
func (k *named) podSecurityLevel() string {
	if k.onNodes() || k.profilesNodes() || k.options.EnrolledIn().Mode == product.Sidecar {
		return manifest.LevelPrivileged
	}
	return manifest.LevelRestricted
}

// setPlan stores a plan. If no planned run profiles nodes, it turns profiling off for the pods of facts too, because
// their namespace admits no privileged pods.
func (k *named) setPlan(p targets.Plan) {
	k.plan = p
	k.options.Profile = k.profilesNodes()
}

// profilesNodes reports whether some pods will profile their nodes.
func (k *named) profilesNodes() bool {
	onPath := func(p targets.Placement) bool { return p.Path != "" }
	return k.options.Profile && slices.ContainsFunc(k.plan.Placements, onPath)
}

// Privileges describes the privileges of profile=yes; "" if no pod will profile its node.
func (k *named) Privileges() string {
	if !k.profilesNodes() {
		return ""
	}
	return "pods of runs are privileged and see all processes of their nodes, to sample the nodes' CPUs and to read " +
		"their counters (profile=yes)"
}

// nodePath reports whether an end of a path is in the network of its node.
func nodePath(p result.Path) bool { return p != "" && (!p.ClientPod() || !p.ServerPod()) }

// rightsOf returns the rights that placements need together.
func rightsOf(placements []targets.Placement) []targets.Right {
	var list []targets.Right
	for _, p := range placements {
		list = append(list, p.Rights...)
	}
	return list
}

// probePrograms records which planned programs the pods lack. If that is unclear, the runs will fail.
func (k *named) probePrograms(ctx context.Context, in host.Host) {
	for _, p := range k.plan.Placements {
		if _, known := k.missingPrograms[p.Program]; known || p.Program == "" {
			continue
		}
		err := in.Run(ctx, host.Cmd{Args: []string{p.Program, "--version"}})
		k.missingPrograms[p.Program] = errors.Is(err, host.ErrNoCommand)
	}
}

// checkProgram returns an error if pods are known to lack a program.
func (k *named) checkProgram(program string) error {
	if k.missingPrograms[program] {
		return result.NotSupported(host.Missing(program, "the pods of the image "+k.options.Image))
	}
	return nil
}

// Allowed returns an error that names the rights that p needs beyond those of every run and that the kubeconfig's user
// lacks.
func (k *kubeTarget) Allowed(ctx context.Context, p targets.Placement) error {
	r, err := k.reach(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTime)
	defer cancel()
	missing, err := cluster.MissingRights(ctx, r.cluster, k.options.need(k.plan.Placements), p)
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.New(cluster.MissingRightsText(missing))
}

// need returns the properties that determine rights. placements are those whose rights count.
func (o options) need(placements []targets.Placement) cluster.RightsScope {
	n := cluster.RightsScope{Namespace: o.Namespace, Nodes: [2]string{o.Client, o.Server}, FromHere: o.Here,
		Rights: rightsOf(placements), Deployment: o.Vault.Rights(), DefaultNetwork: o.DefaultNetwork,
		NoClaims: o.Volume.Root()}
	if o.Vault.StorageClass != "" {
		n.Stored = "the data of Vault (vault-storage-class=)"
	}
	return n
}

// vaultVolume returns the settings of the volumes of a deployed Vault.
func (o options) vaultVolume() manifest.Volume { return site.VaultVolume(o.Vault, o.Volume.Size) }

// RBAC returns the rights that a user needs to measure a target, as YAML manifests: in one namespace, or, if wide, for
// namespaces that experiments create and remove. all are the placements of all cases.
func RBAC(spec result.Spec, wide bool, all []targets.Placement) (string, error) {
	o, err := parse(spec)
	if err != nil {
		return "", err
	}
	if wide && o.Namespace != "" {
		return "", fmt.Errorf("%w: %s: namespace=%s takes no rights in the whole cluster; "+
			"leave it out, or print those in it with --rbac", result.ErrSpec, spec.Label(), o.Namespace)
	}
	return cluster.Manifests(o.need(all), wide)
}
