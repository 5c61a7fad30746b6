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

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// New parses a kube target without connecting to the cluster. all are the placements of all cases, which count as
// planned before Begin. agents provides the agent for inject=yes, here is the command line of this program's agent for
// vantage=here. Every error Is result.ErrSpec.
func New(
	spec result.Spec, all []targets.Placement, agents site.Agents, here ...string,
) (targets.Target, error) {
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return newTarget(o, all, agents, here...), nil
}

func newTarget(o options, all []targets.Placement, agents site.Agents, here ...string) *kubeTarget {
	return &kubeTarget{
		options: o, all: all, localAgent: here, experiment: strings.ToLower(rand.Text()[:8]),
		injector: &site.Injector{Agents: agents, Image: o.Image}, pin: &inspection.Pin{}, missingPrograms: map[string]bool{},
		accountTerm: cluster.TermTime, heartbeat: renewInterval,
	}
}

// A kubeTarget is a cluster with options. It connects when first needed.
type kubeTarget struct {
	options         options
	all             []targets.Placement // of all cases
	localAgent      []string            // command line of the agent on this machine
	experiment      string              // random
	groups          int                 // groups of pods created so far
	injector        *site.Injector
	pin             *inspection.Pin // of the image
	cluster         *cluster.Cluster
	nodes           *inspection.NodeChoice // of the experiment
	listed          []corev1.Node
	plan            *targets.Plan         // nil before Begin
	namespace       string                // "" until it exists
	ownNamespace    bool                  // the namespace was created for the experiment, or may have been
	namespaceUID    types.UID             // of our own namespace
	refused         map[result.Path]error // paths that turned out not to be supported
	missingPrograms map[string]bool       // by probed program: pods lack it
	account         *cluster.Account      // of pods that ask the API server
	accounts        int                   // dropped accounts
	accountTerm     time.Duration         // lifetime of an account without the program
	usedAPI         bool                  // cases asked the API server, so objects of runs may be left
	storage         *volumes.Storage      // of measured volumes; set by survey
	vaultStorage    *volumes.Storage      // of a deployed Vault's volumes; set by survey
	nodeWatches     *cluster.Nodes        // of nodes with sites
	claim           *clusterClaim         // set by Begin
	heartbeat       time.Duration         // interval
	leftovers       bool                  // something of a site may be left
	unreachable     bool                  // found by Supports, which is called for every case and tries once
	closed          bool
}

// Supports decides by the options, the nodes, and earlier refusals. If the cluster does not answer, it returns nil and
// Open fails.
func (k *kubeTarget) Supports(p targets.Placement) error {
	if err := k.checkPlacement(p); err != nil {
		return err
	}
	if k.unreachable {
		return nil
	}
	if err := k.survey(context.Background()); err != nil {
		k.unreachable = true
		return nil
	}
	switch {
	case p.Volume:
		return checkVolume(k.storage)
	case p.Application == vault.Name && k.options.Vault.StorageClass != "":
		return checkVolume(k.vaultStorage)
	}
	_, err := k.nodes.At(p.Path.Other(), p.Rotation)
	return err
}

// checkPlacement returns an error for what the options or earlier runs rule out, without asking the cluster.
func (k *kubeTarget) checkPlacement(p targets.Placement) error {
	return cmp.Or(p.Check(), k.checkPath(p.Path), k.checkProbed(p), k.options.Vault.Supports(vault.Here(), p),
		k.checkProgram(p.Program))
}

// checkProbed returns an error if p has pods that answer probes, and there are none with the agent's image.
func (k *kubeTarget) checkProbed(p targets.Placement) error {
	switch {
	case !p.ProbesPods:
		return nil
	case k.options.Here:
		return result.NotSupported("changes are seen from a pod, and vantage=here is this machine; leave it out")
	case k.options.Inject:
		return result.NotSupported("what changes are seen by are pods that answer with the agent's image, and with " +
			"inject=yes theirs has no agent; name an image with one")
	}
	return nil
}

func (k *kubeTarget) checkPath(p result.Path) error {
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
	case node && k.ownNamespace && !k.onNodes():
		return result.NotSupported("no node path is planned, so the namespace of the experiment admits no pods in the " +
			"network of a node")
	case node && k.options.Network != "":
		return result.NotSupported("the network " + k.options.Network + " is one of pods: nodes have no address there")
	case p.Service() && k.options.Network != "":
		return result.NotSupported("Services have no endpoints in the network " + k.options.Network)
	}
	return nil
}

// ensureNamespace creates the namespace or takes the given one, once.
func (k *kubeTarget) ensureNamespace(ctx context.Context) error {
	if k.namespace != "" {
		return nil
	}
	k.options.AssignsUsers = cluster.AssignsUsers(k.cluster)
	if k.options.Namespace != "" {
		k.namespace = k.options.Namespace
		return k.createLease(ctx)
	}
	// If the request gets no answer, the namespace may exist; Close removes it.
	name := manifest.ExperimentName(k.experiment)
	k.ownNamespace = true
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), surveyTime)
	defer cancel()
	wanted := manifest.NewNamespace(name, k.experiment, k.podSecurityLevel())
	wanted.Annotations = map[string]string{annotationClaim: k.claimText()}
	made, err := k.cluster.CoreV1().Namespaces().Create(whole, wanted, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		k.ownNamespace = false
		return fmt.Errorf("%w; or give namespace= one that exists", diagnosis.Explain(err, name))
	}
	if apierrors.IsAlreadyExists(err) {
		made, err = namespaceNamed(whole, k.cluster, name)
	}
	if err != nil {
		return diagnosis.Explain(err, name)
	}
	k.namespace, k.namespaceUID = name, made.UID
	return k.createLease(whole)
}

// namespaceNamed finds a namespace by listing, which needs no further right.
func namespaceNamed(ctx context.Context, api kubernetes.Interface, name string) (*corev1.Namespace, error) {
	found, err := api.CoreV1().Namespaces().List(ctx, cluster.ByName(name))
	if err != nil || len(found.Items) == 0 {
		return nil, errors.Join(err, fmt.Errorf("the namespace %s is there, and is not listed", name))
	}
	return &found.Items[0], nil
}

// closeTime limits the removal of everything by Close.
const closeTime = 60 * time.Second

// Close removes the namespace if it was created, or else what is left of sites, and returns when it is gone. Its error
// Is targets.ErrLeft, or reports a second Close.
func (k *kubeTarget) Close() error {
	if k.closed {
		return errors.New("the target is closed twice")
	}
	k.closed = true
	if k.nodeWatches != nil {
		k.nodeWatches.End()
	}
	left := k.storage.RemoveReused(context.Background(), k.namespace, k.experiment) // has its own timeout
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	left = errors.Join(left, k.removeAPIAccess(ctx))
	// The namespace is removed with its Lease whatever else is left, unless it has a claim to a volume of others.
	if k.ownNamespace {
		lease := k.releaseClaim(ctx, true)
		if err := k.removeNamespace(ctx); err != nil {
			left = errors.Join(left, err, lease)
		}
	} else {
		left = errors.Join(left, k.removeSites(ctx))
		left = errors.Join(left, k.releaseClaim(ctx, left != nil))
	}
	if left != nil {
		return fmt.Errorf("%w: %w", targets.ErrLeft, left)
	}
	return nil
}

// removeSites removes what sites may have left in the user's namespace.
func (k *kubeTarget) removeSites(ctx context.Context) error {
	if !k.leftovers || k.namespace == "" {
		return nil
	}
	which := manifest.ExperimentSelector(k.experiment)
	if _, err := removeSites(ctx, k.cluster, k.namespace, which, anyObject); err != nil {
		return fmt.Errorf("pods and Services with the label %s in the namespace %s: %w", which, k.namespace, err)
	}
	return nil
}

// removeNamespace removes the target's own namespace.
func (k *kubeTarget) removeNamespace(ctx context.Context) error {
	name := manifest.ExperimentName(k.experiment)
	if k.storage.Made() || k.vaultStorage.Made() {
		if err := volumes.DeleteClaims(ctx, k.cluster, name); err != nil {
			return err
		}
	}
	return removeNamespace(ctx, k.cluster, name)
}

// checkVolume returns an error if volumes are known to be unsupported. If the cluster does not answer, it returns nil
// and Open fails.
func checkVolume(s *volumes.Storage) error {
	ctx, cancel := context.WithTimeout(context.Background(), surveyTime)
	defer cancel()
	if err := s.LookUp(ctx); errors.Is(err, result.ErrNotSupported) {
		return err
	}
	return nil
}
