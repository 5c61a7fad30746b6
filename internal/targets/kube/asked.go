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
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
)

// inClusterURL is the URL of the API server for clients in pods; its host is a name in the certificate. The clients
// take the IP address from their environment.
const inClusterURL = "https://kubernetes.default.svc"

// addAPI adds the API server to the place of a pod that asks it.
func (k *claimed) addAPI(place *targets.Place, p *part) {
	e := k.endpoint(p.plan.Nodes[0])
	e.URL, e.InPod, e.CAFile, e.Secret.TokenFile = inClusterURL, true, manifest.CAFile, manifest.TokenFile
	e.Lacks, e.Names = k.account.DeniedPurposes, k.account.Names
	place.Endpoint = e
	place.Facts = append([]result.Fact{{Name: "vantage", Value: "pod"}}, place.Facts...)
	place.Health = func(ctx context.Context) []string { return append(k.objectHealth(ctx, p), p.group.Health(ctx)...) }
}

// endpoint returns the parts of the API server's endpoint that do not depend on the vantage.
func (k *claimed) endpoint(node string) host.Endpoint {
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

// newLocal returns this machine as a client with the kubeconfig's credentials. node is the node on which runs start
// pods.
func (k *claimed) newLocal(ctx context.Context, node string) (*site.Local, error) {
	if len(k.localAgent) == 0 {
		return nil, result.NotSupported("this program has no agent for this machine; leave vantage=here out")
	}
	k.usedAPI = true
	if k.account == nil {
		k.account = cluster.KubeconfigAccount(ctx, k.cluster, rightsOf(k.plan.Placements))
	}
	e := k.endpoint(node)
	_, config, err := k.options.Kubeconfig.Load() // without our request counter and retries
	if err == nil {
		err = cluster.AddCredentials(ctx, config, &e)
	}
	if err != nil {
		return nil, err
	}
	e.Lacks, e.Names = k.account.DeniedPurposes, k.account.Names
	return site.NewLocal(e, k.localAgent...), nil
}

// localPlace returns the place of this machine as a client of the API server.
func (k *claimed) localPlace(p *part) targets.Place {
	return targets.Place{
		Pair:   host.Pair{Client: p.local.Host(), Shared: true, Endpoint: p.local.Endpoint},
		Facts:  []result.Fact{{Name: "vantage", Value: "here"}, {Name: "client", Value: "here"}},
		Health: func(ctx context.Context) []string { return k.objectHealth(ctx, p) },
	}
}

// removeFailedRunObjects removes the objects that failed runs on the API server left.
func (k *claimed) removeFailedRunObjects(ctx context.Context, parts ...*part) error {
	if !slices.ContainsFunc(parts, (*part).mayLeaveObjects) {
		return nil
	}
	return k.removeObjects(ctx)
}

// mayLeaveObjects reports whether objects of runs may be left.
func (p *part) mayLeaveObjects() bool {
	switch {
	case p.err != nil || !p.plan.AsksAPI():
		return false
	case p.local != nil:
		return p.local.Failed()
	}
	return p.group.Failed()
}

// objectHealth removes the objects of failed runs between runs, since the next run would see them, and reports a
// failure to do so.
func (k *claimed) objectHealth(ctx context.Context, p *part) []string {
	if err := k.removeFailedRunObjects(ctx, p); err != nil {
		return []string{fmt.Sprintf("objects of a run that failed may be left in the cluster: %v", err)}
	}
	return nil
}

// removeObjects removes the objects of runs, recognized by their run label.
func (k *claimed) removeObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), objectCleanupTime)
	defer cancel()
	_, err := removeObjects(ctx, k.cluster, k.namespace, manifest.ExperimentSelector(k.experiment)+","+labelRun,
		slices.Concat(runCollections, siteKinds, namespaceKind), anyObject)
	return err
}

// removeAPIAccess removes the objects of runs on the API server, and the account.
func (k *claimed) removeAPIAccess(ctx context.Context) error {
	if !k.usedAPI {
		return nil
	}
	err := k.removeObjects(ctx)
	k.account.End()
	if k.options.Here {
		return err
	}
	kinds := clusterKinds
	if !k.ownNamespace { // our own namespace takes the account along
		kinds = slices.Concat(kinds, accountKinds)
	}
	selector := manifest.ExperimentSelector(k.experiment)
	_, left := removeObjects(ctx, k.cluster, k.namespace, selector, kinds, anyObject)
	return errors.Join(err, left)
}

// objectCleanupTime limits the removal of objects that a killed agent left.
const objectCleanupTime = 30 * time.Second

// ensureAccount creates the account with the rights of the planned calls, unless a valid one exists.
func (k *claimed) ensureAccount(ctx context.Context) error {
	if k.account.Valid() {
		return nil
	}
	k.dropAccount()
	k.usedAPI = true
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	var err error
	spec := cluster.AccountSpec{Experiment: k.experiment, Namespace: k.namespace, UID: k.namespaceUID, Count: k.accounts}
	rights := rightsOf(k.plan.Placements)
	k.account, err = cluster.NewAccount(whole, k.cluster, spec, rights, k.accountTerm, k.accountJobPod())
	return err
}

// accountJobPod returns the pod template of the Job that owns an account.
func (k *claimed) accountJobPod() corev1.PodSpec {
	b := manifest.Blueprint{Settings: k.options.Settings, Namespace: k.namespace,
		Placements: []targets.Placement{{}}} // without a server
	pod := b.Settings.PodSpec(b.Container())
	pod.Volumes = b.Volumes()
	return pod
}

// dropAccount forgets the account, if there is one, and lets it expire.
func (k *claimed) dropAccount() {
	if k.account == nil {
		return
	}
	k.account.End()
	k.account = nil
	k.accounts++
}
