package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/local"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/access"
	"github.com/knotmeter/knotmeter/internal/target/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// inClusterURL is the API server as pods know it: by the name that its certificate has; pods find its address in their
// environment.
const inClusterURL = "https://kubernetes.default.svc"

// openAPI makes a place from which the API server is asked.
func (k *kubeTarget) openAPI(ctx context.Context, p target.Placement) (target.Single, error) {
	if k.options.Here {
		return k.openHere(ctx, p)
	}
	s, err := k.open(ctx, p)
	if err != nil {
		return target.Single{}, k.judge(ctx, err)
	}
	e := k.endpoint(s.Plan.Nodes[0])
	e.URL, e.InPod, e.CAFile, e.Secret.TokenFile = inClusterURL, true, manifest.CAFile, manifest.TokenFile
	e.Lacks, e.Names = k.account.Lacks, k.account.Names
	asking := &asker{Host: s.Host(manifest.Client)}
	place := target.Place{
		Pair:     host.Pair{Client: asking, Shared: true, Endpoint: e},
		Facts:    append([]result.Fact{{Name: "vantage", Value: "pod"}}, s.Facts()...),
		Warnings: inspection.SidecarWarnings(s.Pods), Health: s.Health,
	}
	return target.Single{Place: place, Spent: s.Spent,
		Close: k.closing(func(ctx context.Context) error { return errors.Join(s.Remove(ctx), k.sweep(ctx, asking)) }),
	}, nil
}

// endpoint is what both vantage points have of an API server.
func (k *kubeTarget) endpoint(node string) host.Endpoint {
	e := host.Endpoint{Namespace: k.namespace, Image: k.options.Image, Node: node,
		Labels: manifest.ExperimentLabels(k.experiment), Pod: map[string]any{}}
	for _, n := range k.listed {
		if name := n.Labels["kubernetes.io/hostname"]; n.Name == node && name != "" {
			e.Node = name
		}
	}
	e.PodLabels, e.PodAnnotations = k.options.Marks(nil)
	if k.options.AssignsUsers {
		e.Pod["securityContext"] = k.options.PodSecurity()
	}
	if t := k.options.Pods.Tolerations; len(t) > 0 {
		e.Pod["tolerations"] = t
	}
	if s := k.options.Pods.ImagePullSecrets; len(s) > 0 {
		e.Pod["imagePullSecrets"] = s
	}
	if c := k.options.RuntimeClass; c != "" {
		e.Pod["runtimeClassName"] = c
	}
	return e
}

// openHere makes this machine the place from which the API server is asked, with the credentials of the kubeconfig.
func (k *kubeTarget) openHere(ctx context.Context, p target.Placement) (target.Single, error) {
	if ctx.Err() != nil {
		return target.Single{}, context.Cause(ctx)
	}
	node, err := k.readyHere(ctx, p)
	if err != nil {
		return target.Single{}, k.judge(ctx, err)
	}
	e := k.endpoint(node)
	_, config, err := k.options.Kubeconfig.Load() // without what counts our own calls
	if err == nil {
		err = connection.Credentials(ctx, config, &e)
	}
	if err != nil {
		return target.Single{}, err
	}
	e.Lacks, e.Names = k.account.Lacks, k.account.Names
	life, end := context.WithCancel(context.Background())
	asking := &asker{Host: local.New("here", netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil, k.here...), life: life}
	place := target.Place{
		Pair:  host.Pair{Client: asking, Shared: true, Endpoint: e},
		Facts: []result.Fact{{Name: "vantage", Value: "here"}, {Name: "client", Value: "here"}},
	}
	return target.Single{Place: place,
		Close: k.closing(func(ctx context.Context) error {
			end()
			asking.running.Wait()
			return k.sweep(ctx, asking)
		}),
	}, nil
}

// readyHere sees to the namespace, and says which node pods are to start on.
func (k *kubeTarget) readyHere(ctx context.Context, p target.Placement) (node string, err error) {
	if len(k.here) == 0 {
		return "", result.NotSupported("this program has no agent for this machine; leave vantage=here out")
	}
	if err := k.survey(ctx); err != nil {
		return "", err
	}
	nodes, err := k.nodes.At(false, p.Rotation)
	if err != nil {
		return "", err
	}
	if err := k.enter(ctx); err != nil {
		return "", err
	}
	k.asked = true
	if k.account == nil {
		k.account = access.OfKubeconfig(ctx, k.cluster, k.calls())
	}
	return nodes[0].Name, nil
}

// An asker is a host whose agent may leave objects behind when it is killed. Where it has a life, its commands end with
// that.
type asker struct {
	host.Host
	life    context.Context
	running sync.WaitGroup
	failed  atomic.Bool
}

func (a *asker) Run(ctx context.Context, c host.Cmd) error {
	a.running.Add(1)
	defer a.running.Done()
	if a.life != nil {
		if a.life.Err() != nil {
			return fmt.Errorf("on %s: %s: the site is closed", a.Name(), c)
		}
		held, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(a.life, func() { cancel(errors.New("the site is closed")) })()
		ctx = held
	}
	err := a.Host.Run(ctx, c)
	if err != nil {
		a.failed.Store(true)
	}
	return err
}

// sweep removes what an agent that failed has left of its objects.
func (k *kubeTarget) sweep(ctx context.Context, a *asker) error {
	if !a.failed.Load() {
		return nil
	}
	return k.removeObjects(ctx)
}

// removeObjects removes the objects of runs: those with a label that only they have.
func (k *kubeTarget) removeObjects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTime)
	defer cancel()
	_, err := cleanup.RemoveObjects(ctx, k.cluster, k.namespace,
		labels.Set{manifest.LabelExperiment: k.experiment}.String()+","+cleanup.LabelRun,
		slices.Concat(cleanup.ObjectKinds, cleanup.OwnKinds, cleanup.NamespaceKind), cleanup.All)
	return err
}

// leaveAPI removes what asking the API server took.
func (k *kubeTarget) leaveAPI(ctx context.Context) error {
	if !k.asked || k.cluster == nil {
		return nil
	}
	err := k.removeObjects(ctx)
	k.account.End()
	if !k.options.Here {
		err = errors.Join(err, access.Remove(ctx, k.cluster, k.home()))
	}
	return err
}

// sweepTime is how long it may take to remove what an agent that was killed has left.
const sweepTime = 30 * time.Second

// home is where the account of pods that ask the API server is made.
func (k *kubeTarget) home() access.Home {
	return access.Home{Experiment: k.experiment, Namespace: k.namespace, UID: k.namespaceUID, Count: k.accounts}
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
	b := manifest.Blueprint{Settings: k.options.Settings, Namespace: k.namespace}
	pod := b.Settings.PodSpec(b.Container(manifest.Client))
	pod.Volumes = b.Volumes()
	var err error
	k.account, err = access.Make(whole, k.cluster, k.home(), k.calls(), k.termTime, pod)
	return err
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
