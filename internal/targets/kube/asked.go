package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"

	"github.com/knotmeter/knotmeter/internal/targets/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// inClusterURL is the API server as pods know it: by the name that its certificate has; pods find its address in their
// environment.
const inClusterURL = "https://kubernetes.default.svc"

// addAPI adds the API server as a pod asks it.
func (k *kubeTarget) addAPI(place *targets.Place, p *part) {
	e := k.endpoint(p.plan.Nodes[0])
	e.URL, e.InPod, e.CAFile, e.Secret.TokenFile = inClusterURL, true, manifest.CAFile, manifest.TokenFile
	e.Lacks, e.Names = k.account.Lacks, k.account.Names
	place.Endpoint = e
	place.Facts = append([]result.Fact{{Name: "vantage", Value: "pod"}}, place.Facts...)
	place.Health = func(ctx context.Context) []string { return append(k.swept(ctx, p), p.group.Health(ctx)...) }
}

// endpoint is what both vantage points have of an API server.
func (k *kubeTarget) endpoint(node string) host.Endpoint {
	e := host.Endpoint{Namespace: k.namespace, Node: node, Labels: manifest.ExperimentLabels(k.experiment),
		Image: k.options.Image, PullPolicy: string(manifest.PullPolicy(k.options.Image))}
	for _, n := range k.listed {
		if name := n.Labels["kubernetes.io/hostname"]; n.Name == node && name != "" {
			e.Node = name
		}
	}
	e.PodLabels, e.PodAnnotations = k.options.PodMetadata(nil)
	e.Pod = k.options.PodFields()
	return e
}

// newHere is this machine, with the credentials of the kubeconfig, for pods that start on a node.
func (k *kubeTarget) newHere(ctx context.Context, node string) (*site.Here, error) {
	if len(k.here) == 0 {
		return nil, result.NotSupported("this program has no agent for this machine; leave vantage=here out")
	}
	k.asked = true
	if k.account == nil {
		k.account = cluster.OfKubeconfig(ctx, k.cluster, k.calls())
	}
	e := k.endpoint(node)
	_, config, err := k.options.Kubeconfig.Load() // without what counts our own calls
	if err == nil {
		err = cluster.Credentials(ctx, config, &e)
	}
	if err != nil {
		return nil, err
	}
	e.Lacks, e.Names = k.account.Lacks, k.account.Names
	return site.NewHere(e, k.here...), nil
}

// placeHere is this machine as the place from which the API server is asked.
func (k *kubeTarget) placeHere(p *part) targets.Place {
	return targets.Place{
		Pair:   host.Pair{Client: p.here.Host(), Shared: true, Endpoint: p.here.Endpoint},
		Facts:  []result.Fact{{Name: "vantage", Value: "here"}, {Name: "client", Value: "here"}},
		Health: func(ctx context.Context) []string { return k.swept(ctx, p) },
	}
}

// sweep removes what agents that ask the API server and failed have left of their objects.
func (k *kubeTarget) sweep(ctx context.Context, parts ...*part) error {
	if !slices.ContainsFunc(parts, (*part).mayLeaveObjects) {
		return nil
	}
	return k.removeObjects(ctx)
}

// mayLeaveObjects says whether objects of runs may be left.
func (p *part) mayLeaveObjects() bool {
	switch {
	case p.err != nil || !p.plan.AsksAPI():
		return false
	case p.here != nil:
		return p.here.Failed()
	}
	return p.group.Failed()
}

// swept is sweep between runs, which would find what an earlier one left.
func (k *kubeTarget) swept(ctx context.Context, p *part) []string {
	if err := k.sweep(ctx, p); err != nil {
		return []string{fmt.Sprintf("objects of a run that failed may be left in the cluster: %v", err)}
	}
	return nil
}

// removeObjects removes the objects of runs: those with a label that only they have.
func (k *kubeTarget) removeObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTime)
	defer cancel()
	_, err := cleanup.Remove(ctx, k.cluster, k.namespace, manifest.ExperimentSelector(k.experiment)+","+cleanup.LabelRun,
		slices.Concat(cleanup.ObjectKinds, cleanup.SiteKinds, cleanup.NamespaceKind), cleanup.All)
	return err
}

// leaveAPI removes what asking the API server took.
func (k *kubeTarget) leaveAPI(ctx context.Context) error {
	if !k.asked || k.cluster == nil {
		return nil
	}
	err := k.removeObjects(ctx)
	k.account.End()
	if k.options.Here {
		return err
	}
	kinds := cleanup.ClusterKinds
	if !k.own { // else the rest goes with the namespace
		kinds = slices.Concat(kinds, cleanup.AccountKinds)
	}
	selector := manifest.ExperimentSelector(k.experiment)
	_, left := cleanup.Remove(ctx, k.cluster, k.namespace, selector, kinds, cleanup.All)
	return errors.Join(err, left)
}

// sweepTime is how long it may take to remove what an agent that was killed has left.
const sweepTime = 30 * time.Second

// home is where the account of pods that ask the API server is made.
func (k *kubeTarget) home() cluster.Home {
	return cluster.Home{Experiment: k.experiment, Namespace: k.namespace, UID: k.namespaceUID, Count: k.accounts}
}

// admit makes the account with the rights of what is planned, once.
func (k *kubeTarget) admit(ctx context.Context) error {
	if k.account.Lasts() {
		return nil
	}
	k.dismiss()
	k.asked = true
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	var err error
	k.account, err = cluster.Make(whole, k.cluster, k.home(), k.calls(), k.termTime, k.holderPod())
	return err
}

// holderPod is the pod of the Job that an account belongs to.
func (k *kubeTarget) holderPod() corev1.PodSpec {
	b := manifest.Blueprint{Settings: k.options.Settings, Namespace: k.namespace,
		Placements: []targets.Placement{{}}} // it stands alone
	pod := b.Settings.PodSpec(b.Container())
	pod.Volumes = b.Volumes()
	return pod
}

// dismiss forgets the account.
func (k *kubeTarget) dismiss() {
	if k.account == nil {
		return
	}
	k.account.End()
	k.account = nil
	k.accounts++
}
