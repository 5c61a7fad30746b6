package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// ErrGone marks a site that something else than we removed.
var ErrGone = errors.New("it was removed underneath the run")

// Explain turns an error of the API server into one for people.
func Explain(err error, namespace string) error {
	var status *apierrors.StatusError
	var dial *net.OpError
	var away *url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know who asks; renew the credentials of the kubeconfig: %w", err)
	case errors.As(err, &status):
		return &refusal{refused(status.ErrStatus.Message, namespace), err}
	case errors.As(err, &dial), errors.As(err, &away):
		return fmt.Errorf("the API server cannot be reached: %w", err)
	}
	return err
}

// MissingRight is the error of a missing right that comes as text alone, as that of a refused upgrade does; nil for
// others.
func MissingRight(err error, namespace string) error {
	if err == nil || !forbidden.MatchString(err.Error()) {
		return nil
	}
	return &refusal{refused(err.Error(), namespace), err}
}

// Denied says whether an error is that of a missing right.
func Denied(err error) bool {
	r := new(refusal)
	return errors.As(err, &r) && forbidden.MatchString(r.err.Error())
}

// NamespaceGone says whether the API server refused something since its namespace is no more, or will soon be.
func NamespaceGone(err error) bool {
	status := new(apierrors.StatusError)
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		errors.As(err, &status) && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil &&
			status.ErrStatus.Details.Kind == "namespaces"
}

// A refusal is an error of the API server in words for people.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.err }

// forbidden matches the API server's text about rights.
var forbidden = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"` +
	`(?: in the namespace "([^"]*)"| at the cluster scope)?`)

func refused(text, namespace string) string {
	if m := forbidden.FindStringSubmatch(text); m != nil {
		where := "in the whole cluster"
		if m[5] != "" {
			where = "in the namespace " + m[5]
		}
		return fmt.Sprintf("the user %s may not %s %s %s; 'knotmeter doctor --target … --rbac' prints what is needed", m[1],
			m[2], m[3], where)
	}
	says := hinted(text, refusalHints, "the API server refuses: {text}").remedy
	return strings.NewReplacer("{namespace}", namespace, "{text}", Shorten(text), "{cause}", Shorten(firstCause(text))).
		Replace(says)
}

// NoHostNetwork is the reason of node paths that a cluster refuses; nil if err is about something else.
func NoHostNetwork(err error, namespace string) error {
	if !apierrors.IsForbidden(err) || !hostNetwork.MatchString(err.Error()) {
		return nil
	}
	return result.NotSupported(fmt.Sprintf(
		"node paths need pods in the network of their node, which the namespace %s refuses (%s); without namespace= one "+
			"is made that allows them", namespace, Shorten(firstCause(err.Error()))))
}

// hostNetwork matches what admission plugins say of pods in the network of their node.
var hostNetwork = regexp.MustCompile(`hostNetwork|host namespaces|host network`)

// firstCause is the text of an API server's error from the admission's own words on.
func firstCause(text string) string {
	if _, after, ok := strings.Cut(text, "is forbidden: "); ok {
		return after
	}
	return text
}

// A NoFamily is the reason why there is no traffic of an IP version, and on which paths.
type NoFamily struct {
	text string
	On   func(targets.Path) bool
}

func (e *NoFamily) Error() string { return e.text }

func (e *NoFamily) Is(target error) bool { return target == result.ErrNotSupported }

// NoAddress is the reason of all paths to the kind of place that a server is in, when it has no address of the family
// that is asked for.
func NoAddress(p *corev1.Pod, family corev1.IPFamily) error {
	inPod, what := !p.Spec.HostNetwork, "nodes"
	if inPod {
		what = "pods"
	}
	var has []string
	for _, ip := range p.Status.PodIPs {
		has = append(has, ip.IP)
	}
	return &NoFamily{
		text: fmt.Sprintf("the cluster's %s have no %s addresses: %s has %s", what, family, p.Name, inspection.List(has)),
		On:   func(p targets.Path) bool { return p.ServerPod() == inPod },
	}
}

// NoServiceFamily is the reason of all Service paths when Services have no addresses of a family; nil if err is about
// something else.
func NoServiceFamily(err error, family corev1.IPFamily) error {
	if family == "" || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ipFamilies") {
		return nil
	}
	return &NoFamily{text: fmt.Sprintf("the cluster's Services have no %s addresses (%s)", family, Shorten(err.Error())),
		On: targets.Path.Service}
}

// IgnoreNotFound is nil for an error that says that something is not there.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists is nil for an error that says that something is there already.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
