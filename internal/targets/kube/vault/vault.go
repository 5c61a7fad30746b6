// Package vault is the Vault that is deployed for a block on a cluster: its manifests, and its life from the making of
// its pods to their end.
package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// A Deployment is the Vault of a block, from its making to its end.
type Deployment struct {
	client   *site.Group
	plan     Plan
	volumes  []*volumes.Volume      // of the replicas; none where their data is on the nodes' own disks
	Pods     map[string]*corev1.Pod // as they were when all worked
	watch    *cluster.PodWatch      // what becomes of them
	Endpoint host.Endpoint
	took     time.Duration
}

// New is for a group that asks it. Nothing of it is made yet. Volumes, if it is to have any, are of storage; those that
// are made once a node is chosen are on the nodes to spread to.
func New(
	ctx context.Context, client *site.Group, wanted vault.Instance, storage *volumes.Storage, spread []string,
) (*Deployment, error) {
	d := &Deployment{client: client, plan: Plan{client.Plan, wanted, spread}}
	if wanted.StorageClass == "" {
		return d, nil
	}
	var err error
	d.volumes, err = storage.PlanClaims(ctx, wanted.Replicas, d.plan.Claim)
	return d, err
}

// beginTime is how long a Vault whose pods run may take to elect a leader and be followed.
const beginTime = 90 * time.Second

func (d *Deployment) Raise(ctx context.Context) error {
	began := time.Now()
	cert, key, err := certificate(began)
	if err != nil {
		return err
	}
	if err := d.eachVolume(func(v *volumes.Volume) error { return v.Provision(ctx) }); err != nil {
		return err
	}
	if err := d.create(ctx, cert, key); err != nil {
		return err
	}
	if err := d.await(ctx); err != nil {
		return diagnosis.Explain(err, d.plan.Namespace)
	}
	d.Endpoint = host.Endpoint{URL: "https://" + net.JoinHostPort(vaultName, strconv.Itoa(vaultPort)), CA: cert,
		Leader: d.plan.Wanted.Leader}
	for _, p := range d.replicas() {
		address, err := inspection.PodAddress(p, d.plan.Settings.Family)
		if err = errors.Join(err, inspection.CheckDefaultNetwork(p, d.plan.Settings.DefaultNetwork)); err != nil {
			return err
		}
		d.Endpoint.Addresses = append(d.Endpoint.Addresses, net.JoinHostPort(address.String(), strconv.Itoa(vaultPort)))
	}
	d.Endpoint.Secret.Token, err = d.begin(ctx)
	d.took = time.Since(began)
	return err
}

// create makes the Secret and the pods; each request is brought to its end, so that what it makes can be removed.
func (d *Deployment) create(ctx context.Context, cert, key []byte) error {
	plan, core := d.plan, d.client.Cluster.CoreV1()
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), site.CleanupTime)
	defer cancel()
	if _, err := core.Secrets(plan.Namespace).Create(whole,
		plan.ConfigSecret(cert, key, d.client.Pods[plan.Name(manifest.Client)].UID), metav1.CreateOptions{}); err != nil {
		return diagnosis.Explain(err, plan.Namespace)
	}
	for i := range plan.Wanted.Replicas {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := core.Pods(plan.Namespace).Create(whole, plan.Replica(i), metav1.CreateOptions{}); err != nil {
			return diagnosis.Explain(err, plan.Namespace)
		}
	}
	return nil
}

// eachVolume does something with all volumes at the same time.
func (d *Deployment) eachVolume(do func(*volumes.Volume) error) error {
	errs := make([]error, len(d.volumes))
	var all sync.WaitGroup
	for i, v := range d.volumes {
		all.Go(func() { errs[i] = do(v) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *Deployment) which() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: d.plan.vaultSelector()}
}

// await waits until all replicas run, or says what keeps them from it.
func (d *Deployment) await(ctx context.Context) error {
	plan, core := d.plan, d.client.Cluster.CoreV1()
	want := plan.Wanted.Replicas
	d.watch = cluster.Pods(core.Pods(plan.Namespace), plan.vaultSelector(), want)
	var err error
	if len(d.volumes) > 0 {
		of := map[string]*volumes.Volume{}
		for i, v := range d.volumes {
			of[plan.vaultPodName(i)] = v
		}
		d.Pods, err = volumes.Running(ctx, d.watch, of)
		return err
	}
	warnings := cluster.PodWarnings(ctx, core.Events(plan.Namespace))
	d.Pods, err = d.watch.Running(ctx, diagnosis.NewReadiness(want, time.Now(), warnings), nil)
	return err
}

// begin has the client's agent initialise and unseal the replicas, so that neither key nor token leaves the cluster but
// through the connection to the API server, and returns the token.
func (d *Deployment) begin(ctx context.Context) (string, error) {
	said, err := d.client.Errand(ctx, vault.Errand{Endpoint: d.Endpoint, Patience: beginTime})
	if err != nil {
		return "", err
	}
	if said.Error != "" {
		return "", fmt.Errorf("the Vault that was deployed does not work: %s%s", said.Error, d.sick())
	}
	return said.Token, nil
}

// sick is what became of the pods of a Vault that does not work, in brackets; empty if nothing is known.
func (d *Deployment) sick() string {
	if list := d.Ailments(); len(list) > 0 {
		return " (" + strings.Join(list, "; ") + "; 'kubectl logs' of its pods may say why)"
	}
	return ""
}

// Ailments are what became of the pods since all worked.
func (d *Deployment) Ailments() []string {
	if d.watch == nil {
		return nil
	}
	return d.watch.Ailments(d.Pods)
}

// Health is what became of the pods and their volumes since all worked that makes a run count for nothing.
func (d *Deployment) Health(ctx context.Context) []string {
	list := d.Ailments()
	for _, v := range d.volumes {
		list = append(list, v.Health(ctx)...)
	}
	return list
}

// Warnings are what a reader of runs on the Vault should know.
func (d *Deployment) Warnings() []result.Warning {
	list := inspection.SidecarWarnings(d.Pods)
	for _, v := range d.volumes {
		list = append(list, v.Warnings()...)
	}
	return list
}

// replicas are the pods in the order of their names.
func (d *Deployment) replicas() []*corev1.Pod {
	var list []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(d.Pods)) {
		list = append(list, d.Pods[name])
	}
	return list
}

func (d *Deployment) Facts() []result.Fact {
	var nodes []string
	digest := result.Unknown
	for _, p := range d.replicas() {
		nodes = append(nodes, p.Spec.NodeName)
		if id := inspection.ImageOf(p, "").Digest; id != "" {
			digest = id
		}
	}
	stored := "the nodes' own disks (emptyDir)"
	if class := d.plan.Wanted.StorageClass; class != "" {
		stored = fmt.Sprintf("a new volume of %s and the class %s for each replica", d.plan.Settings.Volume.Size.String(),
			class)
	}
	facts := []result.Fact{
		{Name: "vault.deployment", Value: "fresh for the block"}, {Name: "vault.replicas", Value: strconv.Itoa(len(d.Pods))},
		{Name: "vault.storage", Value: "raft, on " + stored},
		{Name: "vault.nodes", Value: strings.Join(nodes, ", ")},
		{Name: "vault.cpu", Value: cmp.Or(d.plan.Wanted.CPU, "no limit")},
		{Name: "vault.memory", Value: cmp.Or(d.plan.Wanted.Memory, "up to 2Gi")},
		{Name: "vault.image", Value: d.plan.Wanted.Image}, {Name: "vault.image-digest", Value: digest},
		{Name: "vault.sidecars", Value: inspection.SidecarFact(d.Pods).Value},
		{Name: "vault.begun-in", Value: fmt.Sprintf("%.1f s", d.took.Seconds())},
	}
	if len(d.volumes) == 0 {
		return facts
	}
	var names []string
	for _, v := range d.volumes {
		names = append(names, v.Name())
	}
	return append(facts, result.Fact{Name: "vault.volumes", Value: strings.Join(names, ", ")})
}

// Remove removes the deployment with its volumes and returns when it is gone.
func (d *Deployment) Remove(ctx context.Context) error {
	if err := d.removePods(ctx); err != nil {
		return err
	}
	return d.eachVolume(func(v *volumes.Volume) error { return v.Remove(ctx) })
}

// removePods removes the pods with their Secret.
func (d *Deployment) removePods(ctx context.Context) error {
	if d.watch != nil {
		defer d.watch.End()
	}
	plan, core := d.plan, d.client.Cluster.CoreV1()
	err := errors.Join(
		diagnosis.IgnoreNotFound(core.Pods(plan.Namespace).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, d.which())),
		diagnosis.IgnoreNotFound(core.Secrets(plan.Namespace).Delete(ctx, plan.Name(vaultRole), metav1.DeleteOptions{})))
	if err != nil {
		return diagnosis.Explain(err, plan.Namespace)
	}
	if d.watch != nil && d.watch.AllGone(ctx) {
		return nil
	}
	pods := core.Pods(plan.Namespace)
	return diagnosis.Explain(cluster.Gone(ctx, d.which(), pods.List, pods.Watch), plan.Namespace)
}
