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
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// ErrGone is the error of a pod or claim that something other than Knotmeter removed.
var ErrGone = errors.New("it was removed underneath the run")

// Explain adds the cause and a remedy to an error of a request to the API server. It returns other errors as they are.
func Explain(err error, namespace string) error {
	var status *apierrors.StatusError
	var dial *net.OpError
	var request *url.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know who asks; renew the credentials of the kubeconfig: %w", err)
	case errors.As(err, &status):
		return &refusal{refusalText(status.ErrStatus.Message, namespace), err}
	case errors.As(err, &dial), errors.As(err, &request):
		return fmt.Errorf("the API server cannot be reached: %w", err)
	}
	return err
}

// MissingRight returns the explanation of err if its text is about a missing right, else nil. It reads the text because
// some such errors, for example about a refused upgrade, have no status.
func MissingRight(err error, namespace string) error {
	if err == nil || !forbidden.MatchString(err.Error()) {
		return nil
	}
	return &refusal{refusalText(err.Error(), namespace), err}
}

// Denied reports whether an error that Explain returned is about a missing right.
func Denied(err error) bool {
	r := new(refusal)
	return errors.As(err, &r) && forbidden.MatchString(r.err.Error())
}

// NamespaceGone reports whether the API server refused a request because the namespace is missing or being removed.
func NamespaceGone(err error) bool {
	status := new(apierrors.StatusError)
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		errors.As(err, &status) && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil &&
			status.ErrStatus.Details.Kind == "namespaces"
}

// A refusal is an error of the API server with an explanation as its text.
type refusal struct {
	text string
	err  error
}

func (r *refusal) Error() string { return r.text }

func (r *refusal) Unwrap() error { return r.err }

// forbidden matches the API server's text about a missing right.
var forbidden = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"` +
	`(?: in the namespace "([^"]*)"| at the cluster scope)?`)

// refusalText explains the message of an API server's error.
func refusalText(text, namespace string) string {
	if m := forbidden.FindStringSubmatch(text); m != nil {
		where := "in the whole cluster"
		if m[5] != "" {
			where = "in the namespace " + m[5]
		}
		return fmt.Sprintf("the user %s may not %s %s %s; 'knotmeter doctor --target … --rbac' prints what is needed", m[1],
			m[2], m[3], where)
	}
	sentence := findHint(text, refusalHints, "the API server refuses: {text}").remedy
	return strings.NewReplacer("{namespace}", namespace, "{text}", Shorten(text), "{cause}", Shorten(firstCause(text))).
		Replace(sentence)
}

// NoHostNetwork returns an error that node paths are not supported if err reports that a namespace refuses the host
// network, else nil.
func NoHostNetwork(err error, namespace string) error {
	if !apierrors.IsForbidden(err) || !hostNetwork.MatchString(err.Error()) {
		return nil
	}
	return result.NotSupported(fmt.Sprintf(
		"node paths need pods in the network of their node, which the namespace %s refuses (%s); without namespace= one "+
			"is made that allows them", namespace, Shorten(firstCause(err.Error()))))
}

// hostNetwork matches errors of admission plugins about the host network.
var hostNetwork = regexp.MustCompile(`hostNetwork|host namespaces|host network`)

// firstCause returns the part of an API server's error that admission wrote.
func firstCause(text string) string {
	if _, after, ok := strings.Cut(text, "is forbidden: "); ok {
		return after
	}
	return text
}

// A NoFamily is the error of paths without addresses of an IP family.
type NoFamily struct {
	text string
	On   func(result.Path) bool // reports whether a path is affected
}

func (e *NoFamily) Error() string { return e.text }

// Is makes a NoFamily a result.ErrNotSupported.
func (e *NoFamily) Is(target error) bool { return target == result.ErrNotSupported }

// NoAddress returns the error of a server's pod without an address of a family. It concerns all paths to pods, or all
// paths to nodes if the pod is in the network of its node.
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
		On:   func(p result.Path) bool { return p.ServerPod() == inPod },
	}
}

// NoServiceFamily returns the error that Services have no addresses of a family if err says so, else nil.
func NoServiceFamily(err error, family corev1.IPFamily) error {
	if family == "" || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ipFamilies") {
		return nil
	}
	return &NoFamily{text: fmt.Sprintf("the cluster's Services have no %s addresses (%s)", family, Shorten(err.Error())),
		On: result.Path.Service}
}

// IgnoreNotFound returns nil for a NotFound error, else err.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists returns nil for an AlreadyExists error, else err.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
