package kube

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

// A noFamily is the reason why there is no traffic of an IP version, and on which paths.
type noFamily struct {
	text string
	on   func(target.Path) bool
}

func (e *noFamily) Error() string        { return e.text }
func (e *noFamily) Is(target error) bool { return target == result.ErrNotSupported }

// noAddress is the reason of all paths to the kind of place that a server is in, when it has no address of the family
// that is asked for.
func noAddress(p *corev1.Pod, family corev1.IPFamily) error {
	inPod, what := !p.Spec.HostNetwork, "nodes"
	if inPod {
		what = "pods"
	}
	var has []string
	for _, ip := range p.Status.PodIPs {
		has = append(has, ip.IP)
	}
	return &noFamily{
		text: fmt.Sprintf("the cluster's %s have no %s addresses: %s has %s", what, family, p.Name, list(has)),
		on:   func(p target.Path) bool { return p.ServerPod() == inPod },
	}
}

// noServiceFamily is the reason of all Service paths when Services have no addresses of a family; nil if err is about
// something else.
func noServiceFamily(err error, family corev1.IPFamily) error {
	if family == "" || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ipFamilies") {
		return nil
	}
	return &noFamily{text: fmt.Sprintf("the cluster's Services have no %s addresses (%s)", family, shorten(err.Error())), on: target.Path.Service}
}

// refuse remembers on which paths something turned out not to be supported: an IP version, else pods in the network of their
// node.
func (k *kubeTarget) refuse(err error) {
	on := nodePath
	if none := new(noFamily); errors.As(err, &none) {
		on = none.on
	}
	if k.refused == nil {
		k.refused = map[target.Path]error{}
	}
	for _, p := range target.Paths() {
		if k.refused[p] == nil && on(p) {
			k.refused[p] = err
		}
	}
}
