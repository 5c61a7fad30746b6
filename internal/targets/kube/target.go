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
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// New parses a kube target without connecting to the cluster. all are the placements of all cases, which count as
// planned before Begin. agents provides the agent for inject=yes, and here is the command line of this program's agent
// for vantage=here. Every error Is result.ErrSpec.
func New(spec result.Spec, all []targets.Placement, agents site.Agents, here ...string) (targets.Target, error) {
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	return newTarget(o, all, agents, here...), nil
}

func newTarget(o options, all []targets.Placement, agents site.Agents, here ...string) *kubeTarget {
	return &kubeTarget{named: &named{
		options: o, plan: targets.Plan{Placements: all}, localAgent: here, experiment: strings.ToLower(rand.Text()[:8]),
		injector: &site.Injector{Agents: agents, Image: o.Image}, imagePin: &inspection.Pin{},
		refused: map[result.Path]error{}, missingPrograms: map[string]bool{},
		accountTerm: cluster.TermTime, heartbeat: renewInterval,
	}}
}

// A kubeTarget is a cluster with its options. It passes through three stages: named, reached and claimed. Each stage
// embeds the one before. The receiver of a method is the earliest stage that has what the method needs.
type kubeTarget struct {
	*named
	connection  *cluster.Cluster // kept between attempts to reach the cluster
	reached     *reached         // set by reach
	claimed     *claimed         // set by claim
	unreachable bool             // set after a failure by Supports, which is called for every case and tries once
	closed      bool
}

// named is the stage before any request to the cluster.
type named struct {
	options         options
	localAgent      []string // command line of the agent on this machine
	experiment      string   // random ID
	injector        *site.Injector
	imagePin        *inspection.Pin       // of the image
	plan            targets.Plan          // before Begin: all cases
	refused         map[result.Path]error // paths that turned out to be unsupported, with the reason
	missingPrograms map[string]bool       // whether pods lack a program, for each program that was probed
	restricted      bool                  // the namespace admits no pods in the network of a node
	accountTerm     time.Duration         // how long an account outlives this program
	heartbeat       time.Duration         // interval of the heartbeats of the claim
}

// reached is the stage in which the cluster has answered and its nodes are chosen.
type reached struct {
	*named
	cluster      *cluster.Cluster
	nodes        inspection.NodeChoice // of the experiment
	listed       []corev1.Node
	nodeWatches  *cluster.Nodes   // of nodes with sites
	storage      *volumes.Storage // of measured volumes
	vaultStorage *volumes.Storage // of a deployed Vault's volumes
}

// claimed is the stage in which the experiment uses the cluster, and may have objects there.
type claimed struct {
	*reached
	claimText     string      // of the claim, stored in an annotation
	lease         *claimLease // nil if no case is planned
	searchedScope string      // where other experiments were looked for, as a fact
	errBusy       error       // ErrBusy if another experiment began while the claim had lapsed
	machine       *targets.MachineClaim

	namespace    string
	exists       bool      // the namespace exists
	ownNamespace bool      // the namespace was created for the experiment, or may have been
	namespaceUID types.UID // of our own namespace

	groups    int              // number of groups of pods planned so far
	account   *cluster.Account // of pods that ask the API server; nil until some do
	accounts  int              // number of accounts dropped so far
	usedAPI   bool             // cases asked the API server, so objects of runs may be left
	leftovers bool             // something of a site may be left
}

// claimedStage returns the claimed stage. It sends no request.
func (k *kubeTarget) claimedStage(r *reached) *claimed {
	if k.claimed == nil {
		k.claimed = &claimed{reached: r, claimText: k.plan.Claim(r.cluster.Now()).Text(),
			namespace: cmp.Or(k.options.Namespace, manifest.ExperimentName(k.experiment))}
	}
	return k.claimed
}

// Supports returns an error if the options, the nodes, the storage classes or earlier refusals rule out p. If the
// cluster does not answer, it returns nil, and Open will fail.
func (k *kubeTarget) Supports(p targets.Placement) error {
	if err := k.checkPlacement(p); err != nil {
		return err
	}
	if k.unreachable {
		return nil
	}
	r, err := k.reach(context.Background())
	if err != nil {
		k.unreachable = true
		return nil
	}
	switch {
	case p.Volume:
		return checkVolume(r.storage)
	case p.Application == vault.Name && k.options.Vault.StorageClass != "":
		return checkVolume(r.vaultStorage)
	}
	_, err = r.nodes.At(p.Path.Other(), p.Rotation)
	return err
}

// checkPlacement returns an error for what the options or earlier runs rule out, without asking the cluster.
func (k *named) checkPlacement(p targets.Placement) error {
	return cmp.Or(p.Check(), k.checkPath(p.Path), k.checkProbed(p), k.checkMachine(p),
		k.options.Vault.Supports(vault.Here(), p), k.checkProgram(p.Program))
}

// checkProbed returns an error if p needs pods that answer probes and the options provide no such pods with the agent's
// image.
func (k *named) checkProbed(p targets.Placement) error {
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

// checkMachine returns an error if p is about a node and the client is not on one.
func (k *named) checkMachine(p targets.Placement) error {
	if p.Machine && k.options.Here {
		return result.NotSupported("a node is measured from a pod on it, and vantage=here is this machine; leave it out")
	}
	return nil
}

func (k *named) checkPath(p result.Path) error {
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
	case node && k.restricted:
		return result.NotSupported("no node path is planned, so the namespace of the experiment admits no pods in the " +
			"network of a node")
	case node && k.options.Network != "":
		return result.NotSupported("the network " + k.options.Network + " is one of pods: nodes have no address there")
	case p.Service() && k.options.Network != "":
		return result.NotSupported("Services have no endpoints in the network " + k.options.Network)
	}
	return nil
}

// Applications returns the existing Vault that the options name. It does not return a Vault that is deployed for each
// block.
func (k *named) Applications() map[string]host.Destination {
	return k.options.Vault.Applications(vault.Here())
}

// closeTime limits the removal of everything by Close.
const closeTime = 60 * time.Second

// Close removes the namespace if it was created for the experiment, or else what is left of sites. It returns when
// everything is gone. Its error Is targets.ErrLeft, or reports a second Close.
func (k *kubeTarget) Close() error {
	if k.closed {
		return errors.New("the target is closed twice")
	}
	k.closed = true
	if k.reached != nil {
		k.reached.nodeWatches.End()
	}
	if k.claimed == nil {
		return nil
	}
	if left := k.claimed.close(); left != nil {
		return fmt.Errorf("%w: %w", targets.ErrLeft, left)
	}
	return nil
}

// close removes everything of the experiment, and returns what is left.
func (k *claimed) close() error {
	left := k.storage.RemoveReused(context.Background(), k.namespace, k.experiment) // has its own timeout
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	left = errors.Join(left, k.removeAPIAccess(ctx))
	if !k.ownNamespace {
		left = errors.Join(left, k.removeSites(ctx))
		return errors.Join(left, k.releaseClaim(ctx, left != nil))
	}
	// Whatever else is left, the namespace is removed with its Lease, unless it has a claim to a volume of others.
	lease := k.releaseClaim(ctx, true)
	if err := k.removeNamespace(ctx); err != nil {
		left = errors.Join(left, err, lease)
	}
	return left
}

// removeSites removes what sites may have left in the user's namespace.
func (k *claimed) removeSites(ctx context.Context) error {
	if !k.leftovers {
		return nil
	}
	which := manifest.ExperimentSelector(k.experiment)
	if _, err := removeSites(ctx, k.cluster, k.namespace, which, anyObject); err != nil {
		return fmt.Errorf("pods and Services with the label %s in the namespace %s: %w", which, k.namespace, err)
	}
	return nil
}

// removeNamespace removes the experiment's own namespace.
func (k *claimed) removeNamespace(ctx context.Context) error {
	if k.storage.MayHaveClaims() || k.vaultStorage.MayHaveClaims() {
		if err := volumes.DeleteClaims(ctx, k.cluster, k.namespace); err != nil {
			return err
		}
	}
	return removeNamespace(ctx, k.cluster, k.namespace)
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
