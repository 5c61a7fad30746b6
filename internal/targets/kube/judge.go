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

// An absent is an error that is about the target as a whole, and Is targets.ErrUnavailable.
type absent struct{ error }

func (a absent) Is(err error) bool { return err == targets.ErrUnavailable }

func (a absent) Unwrap() error { return a.error }

// judgeParts judges what went wrong with each part, and returns what is about all of them.
func (k *kubeTarget) judgeParts(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		for _, err := range p.errs() {
			k.learn(p, *err)
			*err = k.judge(ctx, *err)
		}
	}
	for _, p := range parts {
		for _, err := range p.errs() {
			if *err != nil && (ctx.Err() != nil || errors.Is(*err, targets.ErrUnavailable)) {
				return *err
			}
		}
	}
	return nil
}

// judge tells what is wrong with the cluster, or with what we may do there, from what is wrong with a case. A case that
// Supports took for possible has lost its node, if now there is none for it.
func (k *kubeTarget) judge(ctx context.Context, err error) error {
	if err == nil || k.cluster == nil || errors.Is(ctx.Err(), context.Canceled) {
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
	case k.cluster.Lost(), cluster.Unreached(err), diagnosis.NamespaceGone(err), diagnosis.Denied(err),
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

// learn refuses paths by what went wrong with a part between two hosts.
func (k *kubeTarget) learn(p *part, err error) {
	if errors.Is(err, result.ErrNotSupported) && !p.plan.ClientOnly() {
		k.refuse(err)
	}
}

// refuse remembers on which paths something turned out not to be supported: an IP version, else pods in the network of
// their node.
func (k *kubeTarget) refuse(err error) {
	on := nodePath
	if none := new(diagnosis.NoFamily); errors.As(err, &none) {
		on = none.On
	}
	if k.refused == nil {
		k.refused = map[targets.Path]error{}
	}
	for _, p := range targets.Paths() {
		if on(p) {
			k.refused[p] = err
		}
	}
}
