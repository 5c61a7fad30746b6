package site

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

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// A Vault is a Vault that is deployed for one block, from creation to removal.
type Vault struct {
	client        *Group // sends requests to the Vault
	plan          VaultPlan
	volumes       []*volumes.Volume      // of the replicas; empty if their data is on the nodes' disks
	Pods          map[string]*corev1.Pod // by name, as they were when all ran
	watch         *cluster.PodWatch      // of the pods
	Endpoint      host.Endpoint
	startDuration time.Duration // of Start
}

// NewVault plans a Vault for a group that sends requests to it, and creates nothing yet. storage provides the volumes,
// if wanted has any. Volumes of a class that needs a chosen node are distributed over the nodes in spread.
func NewVault(
	ctx context.Context, client *Group, wanted vault.Instance, storage *volumes.Storage, spread []string,
) (*Vault, error) {
	d := &Vault{client: client, plan: VaultPlan{client.Plan, wanted, spread}}
	if wanted.StorageClass == "" {
		return d, nil
	}
	var err error
	d.volumes, err = storage.PlanClaims(ctx, wanted.Replicas, d.plan.Claim)
	return d, err
}

// initTime limits the wait for a running Vault to elect a leader and to have followers.
const initTime = 90 * time.Second

// Start creates the volumes and pods, waits until they run, initialises Vault, and sets Endpoint.
func (d *Vault) Start(ctx context.Context) error {
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
	d.Endpoint.Secret.Token, err = d.initialise(ctx)
	d.startDuration = time.Since(began)
	return err
}

// create creates the Secret and the pods. Its requests ignore the end of ctx, so that everything they create can be
// removed.
func (d *Vault) create(ctx context.Context, cert, key []byte) error {
	plan, core := d.plan, d.client.Cluster.CoreV1()
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTime)
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

// eachVolume calls do for all volumes at the same time.
func (d *Vault) eachVolume(do func(*volumes.Volume) error) error {
	errs := make([]error, len(d.volumes))
	var all sync.WaitGroup
	for i, v := range d.volumes {
		all.Go(func() { errs[i] = do(v) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (d *Vault) podSelector() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: d.plan.vaultSelector()}
}

// await waits until all replicas run. The error explains what prevents it.
func (d *Vault) await(ctx context.Context) error {
	plan, core := d.plan, d.client.Cluster.CoreV1()
	want := plan.Wanted.Replicas
	d.watch = cluster.WatchPods(core.Pods(plan.Namespace), plan.vaultSelector(), want)
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
	d.Pods, err = d.watch.AwaitRunning(ctx, diagnosis.NewReadiness(want, time.Now(), warnings), nil)
	return err
}

// initialise makes the client's agent initialise and unseal the replicas, so that the unseal key never leaves the
// cluster. It returns the token, which crosses only the connection to the API server.
func (d *Vault) initialise(ctx context.Context) (string, error) {
	outcome, err := d.client.RunVaultTask(ctx, vault.Task{Endpoint: d.Endpoint, Timeout: initTime})
	if err != nil {
		return "", err
	}
	if outcome.Error != "" {
		return "", fmt.Errorf("the Vault that was deployed does not work: %s%s", outcome.Error, d.podProblems())
	}
	return outcome.Token, nil
}

// podProblems returns in parentheses what happened to the pods of a Vault that does not work; "" if nothing is known.
func (d *Vault) podProblems() string {
	if list := d.Problems(); len(list) > 0 {
		return " (" + strings.Join(list, "; ") + "; 'kubectl logs' of its pods may say why)"
	}
	return ""
}

// Problems returns what happened to the pods since all of them ran.
func (d *Vault) Problems() []string {
	if d.watch == nil {
		return nil
	}
	return d.watch.Problems(d.Pods)
}

// Health returns what invalidates a run: what happened to the pods and their volumes since all pods ran.
func (d *Vault) Health(ctx context.Context) []string {
	list := d.Problems()
	for _, v := range d.volumes {
		list = append(list, v.Health(ctx)...)
	}
	return list
}

// Warnings returns what a reader of the Vault's results should know.
func (d *Vault) Warnings() []result.Warning {
	list := inspection.SidecarWarnings(d.Pods)
	for _, v := range d.volumes {
		list = append(list, v.Warnings()...)
	}
	return list
}

// replicas returns the pods in the order of their names.
func (d *Vault) replicas() []*corev1.Pod {
	var list []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(d.Pods)) {
		list = append(list, d.Pods[name])
	}
	return list
}

// Facts returns the facts about the deployment, with the prefix "vault.".
func (d *Vault) Facts() []result.Fact {
	var nodes []string
	digest := result.Unknown
	for _, p := range d.replicas() {
		nodes = append(nodes, p.Spec.NodeName)
		if id := inspection.ImageOf(p, "").Digest; id != "" {
			digest = id
		}
	}
	storage := "the nodes' own disks (emptyDir)"
	if class := d.plan.Wanted.StorageClass; class != "" {
		storage = fmt.Sprintf("a new volume of %s and the class %s for each replica", d.plan.Settings.Volume.Size.String(),
			class)
	}
	facts := []result.Fact{
		{Name: "vault.deployment", Value: "fresh for the block"}, {Name: "vault.replicas", Value: strconv.Itoa(len(d.Pods))},
		{Name: "vault.storage", Value: "raft, on " + storage},
		{Name: "vault.nodes", Value: strings.Join(nodes, ", ")},
		{Name: "vault.cpu", Value: cmp.Or(d.plan.Wanted.CPU, "no limit")},
		{Name: "vault.memory", Value: cmp.Or(d.plan.Wanted.Memory, "up to 2Gi")},
		{Name: "vault.image", Value: d.plan.Wanted.Image}, {Name: "vault.image-digest", Value: digest},
		{Name: "vault.sidecars", Value: inspection.SidecarFact(d.Pods).Value},
		{Name: "vault.begun-in", Value: fmt.Sprintf("%.1f s", d.startDuration.Seconds())},
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

// Remove removes the deployment with its volumes, and returns when it is gone.
func (d *Vault) Remove(ctx context.Context) error {
	if err := d.removePods(ctx); err != nil {
		return err
	}
	return d.eachVolume(func(v *volumes.Volume) error { return v.Remove(ctx) })
}

// removePods removes the pods and their Secret.
func (d *Vault) removePods(ctx context.Context) error {
	if d.watch != nil {
		defer d.watch.End()
	}
	plan, core := d.plan, d.client.Cluster.CoreV1()
	err := errors.Join(
		diagnosis.IgnoreNotFound(core.Pods(plan.Namespace).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, d.podSelector())),
		diagnosis.IgnoreNotFound(core.Secrets(plan.Namespace).Delete(ctx, plan.Name(vaultRole), metav1.DeleteOptions{})))
	if err != nil {
		return diagnosis.Explain(err, plan.Namespace)
	}
	if d.watch != nil && d.watch.AwaitGone(ctx) {
		return nil
	}
	pods := core.Pods(plan.Namespace)
	return diagnosis.Explain(cluster.AwaitGone(ctx, d.podSelector(), pods.List, pods.Watch), plan.Namespace)
}
