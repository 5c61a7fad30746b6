package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"

	"github.com/knotmeter/knotmeter/internal/targets/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
)

// New reads the text of a kube target; agents finds what inject=yes puts into pods, and here is the command line of
// this program's agent on this machine, for vantage=here. It reaches no cluster yet. Every error Is targets.ErrSpec.
func New(spec targets.Spec, agents site.Agents, here ...string) (targets.Target, error) {
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return newTarget(o, agents, here...), nil
}

func newTarget(o options, agents site.Agents, here ...string) *kubeTarget {
	return &kubeTarget{
		options: o, here: here, experiment: strings.ToLower(rand.Text()[:8]),
		injector: &site.Injector{Agents: agents, Image: o.Image}, pin: &inspection.Pin{}, lacks: map[string]bool{},
		termTime: cluster.TermTime, renewal: cleanup.Renewal,
	}
}

// A kubeTarget is a cluster with options. It is reached when it is first needed.
type kubeTarget struct {
	options      options
	here         []string // the agent's command line on this machine
	experiment   string   // random
	groups       int      // of pods, made so far
	injector     *site.Injector
	pin          *inspection.Pin // the image's
	cluster      *cluster.Cluster
	nodes        *inspection.NodeChoice // of the experiment
	listed       []corev1.Node
	plan         *targets.Plan          // once the target has begun
	namespace    string                 // that exists
	own          bool                   // and was made
	namespaceUID types.UID              // of one of our own
	refused      map[targets.Path]error // what turned out not to be supported
	lacks        map[string]bool        // programs that pods turned out to lack
	account      *cluster.Account       // of pods that ask the API server, once it was made
	accounts     int                    // that were dismissed
	termTime     time.Duration          // of an account without the program
	asked        bool                   // the API server was: objects of runs may be left
	storage      *volumes.Storage       // what volumes are of, once the cluster is reached
	vaultStorage *volumes.Storage       // what those of a Vault that is deployed are of
	nodeWatches  *cluster.Nodes         // of the nodes that sites were on
	hold         *hold                  // once the target has claimed the cluster
	renewal      time.Duration          // between two heartbeats
	unclean      bool                   // something of a site may be left
	unreached    bool                   // by Supports, which asks once: it is called for every case
	closed       bool
}

// Supports judges by the options, by the nodes, and by what was refused before. Where the cluster cannot
// be asked, Open will tell.
func (k *kubeTarget) Supports(p targets.Placement) error {
	if err := k.offers(p); err != nil {
		return err
	}
	if k.unreached {
		return nil
	}
	if err := k.survey(context.Background()); err != nil {
		k.unreached = true
		return nil
	}
	switch {
	case p.Volume:
		return offersVolume(k.storage)
	case p.Application == vault.Name && k.options.Vault.StorageClass != "":
		return offersVolume(k.vaultStorage)
	}
	_, err := k.nodes.At(p.Path.Other(), p.Rotation)
	return err
}

// offers says what does not depend on the cluster, or was found out of it.
func (k *kubeTarget) offers(p targets.Placement) error {
	return cmp.Or(p.Check(), k.offersPath(p.Path), k.offersChange(p.Call), k.options.Vault.Supports(vault.Here(), p),
		k.equipped(p.Program))
}

// offersChange says whether changes can be made and seen: pods that answer probes have the image of the agent.
func (k *kubeTarget) offersChange(c targets.Call) error {
	switch {
	case c.Operation != targets.Effect:
		return nil
	case k.options.Here:
		return result.NotSupported("changes are seen from a pod, and vantage=here is this machine; leave it out")
	case k.options.Inject:
		return result.NotSupported("what changes are seen by are pods that answer with the agent's image, and with " +
			"inject=yes theirs has no agent; name an image with one")
	}
	return nil
}

func (k *kubeTarget) offersPath(p targets.Path) error {
	node := nodePath(p)
	switch {
	case p == "" && k.options.Network != "":
		return result.NotSupported("the network " + k.options.Network + " is one between pods: the API server, " +
			"applications and volumes are not reached by it; leave network= out")
	case k.refused[p] != nil:
		return k.refused[p]
	case node && !k.options.HostNetwork:
		return result.NotSupported("node paths need pods in the network of their node, and host-network=no says that " +
			"there are none")
	case node && k.own && !k.onNodes():
		return result.NotSupported("no node path is planned, so the namespace of the experiment admits no pods in the " +
			"network of a node")
	case node && k.options.Network != "":
		return result.NotSupported("the network " + k.options.Network + " is one of pods: nodes have no address there")
	case p.Service() && k.options.Network != "":
		return result.NotSupported("Services have no endpoints in the network " + k.options.Network)
	}
	return nil
}

// enter sees to the namespace, once.
func (k *kubeTarget) enter(ctx context.Context) error {
	if k.namespace != "" {
		return nil
	}
	k.options.AssignsUsers = cluster.AssignsUsers(k.cluster)
	if k.options.Namespace != "" {
		k.namespace = k.options.Namespace
		return k.leaveLease(ctx)
	}
	// A namespace whose making was not answered may exist all the same, and is removed by Close.
	name := manifest.ExperimentName(k.experiment)
	k.own = true
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	wanted := manifest.NewNamespace(name, k.experiment, k.level())
	wanted.Annotations = map[string]string{cleanup.AnnotationClaim: k.claimText()}
	made, err := k.cluster.CoreV1().Namespaces().Create(whole, wanted, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		k.own = false
		return fmt.Errorf("%w; or give namespace= one that exists", diagnosis.Explain(err, name))
	}
	if apierrors.IsAlreadyExists(err) {
		made, err = namespaceNamed(whole, k.cluster, name)
	}
	if err != nil {
		return diagnosis.Explain(err, name)
	}
	k.namespace, k.namespaceUID = name, made.UID
	return k.leaveLease(whole)
}

// namespaceNamed is a namespace that is listed, which takes no further right.
func namespaceNamed(ctx context.Context, api kubernetes.Interface, name string) (*corev1.Namespace, error) {
	found, err := api.CoreV1().Namespaces().List(ctx, cluster.Named(name))
	if err != nil || len(found.Items) == 0 {
		return nil, errors.Join(err, fmt.Errorf("the namespace %s is there, and is not listed", name))
	}
	return &found.Items[0], nil
}

// closeTime is how long a namespace may take to go.
const closeTime = 60 * time.Second

// Close removes the namespace, if it was made, else what is left of sites, and returns when it is gone. Its error Is
// targets.ErrLeft.
func (k *kubeTarget) Close() error {
	if k.closed {
		return errors.New("the target is closed twice")
	}
	k.closed = true
	if k.nodeWatches != nil {
		k.nodeWatches.End()
	}
	left := k.storage.RemoveReused(context.Background(), k.namespace, k.experiment) // which takes its own time
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	left = errors.Join(left, k.leaveAPI(ctx))
	if k.own { // whatever else is left, the namespace goes with the Lease, but not with a claim whose volume is somebody's
		lease := k.release(ctx, true)
		if err := k.leaveNamespace(ctx); err != nil {
			left = errors.Join(left, err, lease)
		}
	} else {
		left = errors.Join(left, k.leaveSites(ctx))
		left = errors.Join(left, k.release(ctx, left != nil))
	}
	if left != nil {
		return fmt.Errorf("%w: %w", targets.ErrLeft, left)
	}
	return nil
}

// leaveSites removes what sites may have left in a namespace that was given.
func (k *kubeTarget) leaveSites(ctx context.Context) error {
	if !k.unclean || k.namespace == "" {
		return nil
	}
	which := manifest.ExperimentSelector(k.experiment)
	if _, err := cleanup.RemoveSites(ctx, k.cluster, k.namespace, which, cleanup.All); err != nil {
		return fmt.Errorf("pods and Services with the label %s in the namespace %s: %w", which, k.namespace, err)
	}
	return nil
}

// leaveNamespace removes the target's own namespace.
func (k *kubeTarget) leaveNamespace(ctx context.Context) error {
	name := manifest.ExperimentName(k.experiment)
	if k.storage.Made() || k.vaultStorage.Made() {
		if err := volumes.DeleteClaims(ctx, k.cluster, name); err != nil {
			return err
		}
	}
	return cleanup.RemoveNamespace(ctx, k.cluster, name)
}

// offersVolume says what is known to stand in the way of volumes before one is made. Where the cluster cannot be
// asked, Open will tell.
func offersVolume(of *volumes.Storage) error {
	ctx, cancel := context.WithTimeout(context.Background(), surveyTime)
	defer cancel()
	if err := of.LookUp(ctx); errors.Is(err, result.ErrNotSupported) {
		return err
	}
	return nil
}
