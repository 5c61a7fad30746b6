package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// An unavailable error concerns the whole target. It Is targets.ErrUnavailable.
type unavailable struct{ error }

func (a unavailable) Is(err error) bool { return err == targets.ErrUnavailable }

func (a unavailable) Unwrap() error { return a.error }

// classifyParts classifies the errors of each part. It returns the first error that concerns all parts, or any error if
// ctx has ended.
func (k *reached) classifyParts(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		for _, err := range p.errorFields() {
			k.noteUnsupported(p, *err)
			*err = k.markUnavailable(ctx, *err)
		}
	}
	for _, p := range parts {
		for _, err := range p.errorFields() {
			if *err != nil && (ctx.Err() != nil || errors.Is(*err, targets.ErrUnavailable)) {
				return *err
			}
		}
	}
	return nil
}

// markUnavailable marks an error as unavailable if it concerns the whole cluster or the user's rights there. While a
// node that runs may use is not ready, it marks other errors too, except refused paths: Supports accepted these cases,
// so they lack only the node.
func (k *reached) markUnavailable(ctx context.Context, err error) error {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	sick := k.unreadyNodes(ctx)
	switch {
	case errors.Is(err, result.ErrNotSupported):
		if sick == "" || k.isPathRefusal(err) {
			return err
		}
		return unavailable{errors.New(err.Error())} // supported again once the node returns
	case sick != "":
		return unavailable{fmt.Errorf("%s; see to it, or name other nodes with client-node= and server-node=: %w", sick, err)}
	case isClusterWide(k.cluster, err):
		return unavailable{err}
	}
	return err
}

// isClusterWide reports whether an error is about the cluster or the user's rights there, and not about a case.
func isClusterWide(c *cluster.Cluster, err error) bool {
	return c.Unavailable() || cluster.Unreached(err) || diagnosis.NamespaceGone(err) || diagnosis.Denied(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err)
}

// isPathRefusal reports whether an error refuses paths, and is not about nodes.
func (k *named) isPathRefusal(err error) bool {
	for _, known := range k.refused {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// unreadyNodes describes the nodes that runs may use and that are not ready now; "" if all are ready, or if that is
// unknown.
func (k *reached) unreadyNodes(ctx context.Context) string {
	if k.cluster.Unavailable() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.ProbeTime)
	defer cancel()
	nodes, err := k.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	var list []string
	for _, n := range nodes.Items {
		if k.nodes.MayUse(n.Name) && !inspection.Ready(n) {
			list = append(list, "node "+n.Name+" is not ready"+diagnosis.ReadyMessage(n))
		}
	}
	return strings.Join(list, " and ")
}

// noteUnsupported refuses paths if a part between two hosts turned out to be unsupported.
func (k *named) noteUnsupported(p *part, err error) {
	if errors.Is(err, result.ErrNotSupported) && !p.plan.ClientOnly() {
		k.refusePaths(err)
	}
}

// refusePaths remembers the paths that err concerns: those of an IP version, or else those with a pod in the network of
// its node.
func (k *named) refusePaths(err error) {
	on := nodePath
	if none := new(diagnosis.NoFamily); errors.As(err, &none) {
		on = none.On
	}
	for _, p := range result.Paths() {
		if on(p) {
			k.refused[p] = err
		}
	}
}
