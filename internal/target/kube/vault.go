package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/target/kube/watching"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// openApp makes a pod from which an application is asked, and where Vault is asked and is to be deployed, that one too.
func (k *kubeTarget) openApp(ctx context.Context, p target.Placement) (target.Site, error) {
	var e host.Endpoint
	if p.Vault && !k.options.Vault.Deploy {
		var err error
		if e, err = k.options.Vault.Endpoint(vault.Here()); err != nil {
			return target.Site{}, err
		}
	}
	s, err := k.open(ctx, p)
	if err != nil {
		return target.Site{}, k.judge(ctx, err)
	}
	open := target.Site{
		Pair:  host.Pair{Client: s.host(manifest.Client), Shared: true, Endpoint: e},
		Facts: s.facts(), Warnings: inspection.SidecarWarnings(s.pods), Health: s.health, Spent: s.spent,
		Close: func(ctx context.Context) error {
			err := s.remove(ctx)
			k.unclean = k.unclean || err != nil
			return err
		},
	}
	if p.Vault && k.options.Vault.Deploy {
		err = k.addVault(ctx, s, &open)
	}
	return open, err
}

// addVault deploys a Vault beside the client of a site. After an error nothing of either is left.
func (k *kubeTarget) addVault(ctx context.Context, s *site, open *target.Site) error {
	d := &deployment{site: s, plan: vaultPlan{s.plan, k.options.Vault}}
	err := d.raise(ctx)
	removeSite, health := open.Close, open.Health
	open.Close = func(ctx context.Context) error {
		err := d.remove(ctx)
		k.unclean = k.unclean || err != nil
		return errors.Join(err, removeSite(ctx))
	}
	if err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		return errors.Join(k.judge(ctx, err), open.Close(cleanup))
	}
	open.Endpoint = d.endpoint
	open.Facts = append(open.Facts, d.facts()...)
	open.Warnings = append(open.Warnings, inspection.SidecarWarnings(d.pods)...)
	open.Health = func(ctx context.Context) []string { return append(d.ailments(), health(ctx)...) }
	open.Spent = func() []result.Value {
		list := s.spent()
		for i := range list {
			if list[i].Metric == metric.Pods {
				list[i].Number += float64(len(d.pods))
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

// A deployment is the Vault of one site, from its making to its end.
type deployment struct {
	site     *site
	plan     vaultPlan
	pods     map[string]*corev1.Pod // as they were when all worked
	watch    *watching.PodWatch     // what becomes of them
	endpoint host.Endpoint
	took     time.Duration
}

// beginTime is how long a Vault whose pods run may take to elect a leader and be followed.
const beginTime = 90 * time.Second

func (d *deployment) raise(ctx context.Context) error {
	began := time.Now()
	cert, key, err := vaultCertificate(began)
	if err != nil {
		return err
	}
	if err := d.create(ctx, cert, key); err != nil {
		return err
	}
	if err := d.await(ctx); err != nil {
		return diagnosis.Explain(err, d.plan.Namespace)
	}
	d.endpoint = host.Endpoint{URL: "https://" + net.JoinHostPort(vaultName, strconv.Itoa(vaultPort)), CA: cert, Leader: d.plan.place.Leader}
	for _, p := range d.replicas() {
		address, err := inspection.PodAddress(p, d.plan.Settings.Family)
		if err != nil {
			return err
		}
		d.endpoint.Addresses = append(d.endpoint.Addresses, net.JoinHostPort(address.String(), strconv.Itoa(vaultPort)))
	}
	d.endpoint.Secret.Token, err = d.begin(ctx)
	d.took = time.Since(began)
	return err
}

// create makes the Secret and the pods; each request is brought to its end, so that what it makes can be removed.
func (d *deployment) create(ctx context.Context, cert, key []byte) error {
	plan, core := d.plan, d.site.cluster.CoreV1()
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if _, err := core.Secrets(plan.Namespace).Create(whole, plan.vaultSecret(cert, key, d.site.pods[plan.Name(manifest.Client)].UID), metav1.CreateOptions{}); err != nil {
		return diagnosis.Explain(err, plan.Namespace)
	}
	for i := range plan.place.Replicas {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := core.Pods(plan.Namespace).Create(whole, plan.vaultPod(i), metav1.CreateOptions{}); err != nil {
			return diagnosis.Explain(err, plan.Namespace)
		}
	}
	return nil
}

func (d *deployment) which() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: d.plan.vaultSelector()}
}

// await waits until all replicas run, or says what keeps them from it.
func (d *deployment) await(ctx context.Context) error {
	plan, core := d.plan, d.site.cluster.CoreV1()
	want := plan.place.Replicas
	d.watch = watching.Pods(core.Pods(plan.Namespace), plan.vaultSelector(), want)
	warnings := watching.PodWarnings(ctx, core.Events(plan.Namespace))
	var err error
	d.pods, err = d.watch.Running(ctx, diagnosis.NewReadiness(want, time.Now(), warnings), nil)
	return err
}

// begin has the client's agent initialise and unseal the replicas, so that neither key nor token leaves the cluster but
// through the connection to the API server, and returns the token.
func (d *deployment) begin(ctx context.Context) (string, error) {
	said, err := d.site.errand(ctx, vault.Errand{Endpoint: d.endpoint, Patience: beginTime})
	if err != nil {
		return "", err
	}
	if said.Error != "" {
		return "", fmt.Errorf("the Vault that was deployed does not work: %s%s", said.Error, d.sick())
	}
	return said.Token, nil
}

// errand has the client's agent do something at a Vault.
func (s *site) errand(ctx context.Context, e vault.Errand) (vault.Outcome, error) {
	return agent.Do[vault.Outcome](ctx, s.host(manifest.Client), agent.Request{Verb: vault.ErrandVerb, Body: e}, nil)
}

// sick is what became of the pods of a Vault that does not work, in brackets; empty if nothing is known.
func (d *deployment) sick() string {
	if list := d.ailments(); len(list) > 0 {
		return " (" + strings.Join(list, "; ") + "; 'kubectl logs' of its pods may say why)"
	}
	return ""
}

// ailments are what became of the pods since all worked.
func (d *deployment) ailments() []string {
	if d.watch == nil {
		return nil
	}
	return d.watch.Ailments(d.pods)
}

// replicas are the pods in the order of their names.
func (d *deployment) replicas() []*corev1.Pod {
	var list []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		list = append(list, d.pods[name])
	}
	return list
}

func (d *deployment) facts() []result.Fact {
	var nodes []string
	digest := result.Unknown
	for _, p := range d.replicas() {
		nodes = append(nodes, p.Spec.NodeName)
		if id := inspection.ImageOf(p, "").Digest; id != "" {
			digest = id
		}
	}
	return []result.Fact{
		{Name: "vault.deployment", Value: "fresh for the run"}, {Name: "vault.replicas", Value: strconv.Itoa(len(d.pods))},
		{Name: "vault.storage", Value: "raft, on the nodes' own disks (emptyDir)"}, {Name: "vault.nodes", Value: strings.Join(nodes, ", ")},
		{Name: "vault.image", Value: d.plan.place.Image}, {Name: "vault.image-digest", Value: digest},
		{Name: "vault.sidecars", Value: inspection.SidecarFact(d.pods).Value},
		{Name: "vault.begun-in", Value: fmt.Sprintf("%.1f s", d.took.Seconds())},
	}
}

// remove removes the deployment and returns when it is gone.
func (d *deployment) remove(ctx context.Context) error {
	if d.watch != nil {
		defer d.watch.End()
	}
	plan, core := d.plan, d.site.cluster.CoreV1()
	err := errors.Join(
		diagnosis.IgnoreGone(core.Pods(plan.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}, d.which())),
		diagnosis.IgnoreGone(core.Secrets(plan.Namespace).Delete(ctx, plan.Name(vaultRole), metav1.DeleteOptions{})))
	if err != nil {
		return diagnosis.Explain(err, plan.Namespace)
	}
	if d.watch != nil && d.watch.AllGone(ctx) {
		return nil
	}
	pods := core.Pods(plan.Namespace)
	return diagnosis.Explain(watching.Gone(ctx, d.which(), pods.List, pods.Watch), plan.Namespace)
}
