package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/cleanup"
	"github.com/knotmeter/knotmeter/internal/target/kube/connection"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/site"
)

// An absent is an error that is about the target as a whole, and Is target.ErrUnavailable.
type absent struct{ error }

func (a absent) Is(err error) bool { return err == target.ErrUnavailable }

func (a absent) Unwrap() error { return a.error }

// open makes a site, in a namespace that is made again if somebody removed it.
func (k *kubeTarget) open(ctx context.Context, p target.Placement) (*site.Site, error) {
	if k.cluster != nil {
		k.cluster.Hope()
	}
	s, err := k.place(ctx, p)
	if err != nil && k.own && diagnosis.NamespaceGone(err) && cleanup.RemoveNamespace(ctx, k.cluster, k.namespace) == nil {
		k.dismiss()
		k.namespace = ""
		s, err = k.place(ctx, p)
	}
	k.unclean = k.unclean || err != nil && s != nil && (s.Made || s.Volume != nil)
	return s, err
}

// judge tells what is wrong with the cluster, or with what we may do there, from what is wrong with a case. A case that
// Supports took for possible has lost its node, if now there is none for it.
func (k *kubeTarget) judge(ctx context.Context, err error) error {
	if k.cluster == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	sick := k.unready(ctx)
	switch {
	case errors.Is(err, result.ErrNotSupported):
		if sick == "" || k.refusedFor(err) {
			return err
		}
		return absent{errors.New(err.Error())} // with the node it will be supported
	case sick != "":
		return absent{fmt.Errorf("%s; see to it, or name other nodes with client-node= and server-node=: %w", sick, err)}
	case k.cluster.Lost(), connection.Unreached(err), diagnosis.NamespaceGone(err), diagnosis.Denied(err),
		apierrors.IsUnauthorized(err), apierrors.IsServiceUnavailable(err):
		return absent{err}
	}
	return err
}

// refusedFor says whether an error is one about paths, and not about nodes.
func (k *kubeTarget) refusedFor(err error) bool {
	for _, known := range k.refused {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// unready names the nodes that runs are to be on and that are not ready now; empty if all are, or nobody tells.
func (k *kubeTarget) unready(ctx context.Context) string {
	if k.nodes == nil || k.cluster.Lost() {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connection.ProbeTime)
	defer cancel()
	nodes, err := k.cluster.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	var list []string
	for _, n := range nodes.Items {
		if k.nodes.MayUse(n.Name) && !inspection.Ready(n) {
			list = append(list, "node "+n.Name+" is not ready"+diagnosis.Heard(n))
		}
	}
	return strings.Join(list, " and ")
}
