package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/knotmeter/knotmeter/internal/result"
)

func TestExplain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(text string) error { return apierrors.NewForbidden(pods, "p", errors.New(text)) }
	for _, test := range []struct {
		name string
		err  error
		says []string
	}{
		{"right", forbidden(`User "dev" cannot create resource "pods" in API group "" in the namespace "ns"`),
			[]string{"user dev may not create pods in the namespace ns", "--rbac"}},
		{"cluster right", forbidden(`User "dev" cannot list resource "nodes" in API group "" at the cluster scope`),
			[]string{"may not list nodes in the whole cluster"}},
		{"security", forbidden(`violates PodSecurity "restricted:latest": hostNetwork`),
			[]string{"namespace ns refuses the pod"}},
		{"quota", forbidden("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
			[]string{"quota of the namespace ns is used up", "raise it"}},
		{"quota wants more", forbidden("failed quota: q: must specify limits.cpu"), []string{"wants more said", "config="}},
		{"limits", forbidden("maximum memory usage per Container is 64Mi, but limit is 1Gi"),
			[]string{"LimitRange", "config="}},
		{"quota of disks", forbidden("exceeded quota: q, requested: requests.ephemeral-storage=10Gi, used: 0, limited: 1Gi"),
			[]string{"quota of the namespace ns is used up", "size="}},
		{"limit of disks", forbidden("maximum ephemeral-storage usage per Container is 2Gi, but request is 10Gi"),
			[]string{"LimitRange", "size="}},
		{"less than the limit", apierrors.NewBadRequest(`spec.containers[0].resources.requests: Invalid value: "10Gi": ` +
			`must be less than or equal to ephemeral-storage limit of 2Gi`), []string{"LimitRange", "size="}},
		{"terminating", forbidden("unable to create new content in namespace ns because it is being terminated"),
			[]string{"being removed"}},
		{"no namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
			[]string{"there is no namespace ns"}},
		{"unauthorized", apierrors.NewUnauthorized("no"), []string{"renew the credentials"}},
		{"other", apierrors.NewInternalError(errors.New("etcd")), []string{"the API server refuses", "etcd"}},
	} {
		got := Explain(fmt.Errorf("wrapped: %w", test.err), "ns")
		for _, words := range test.says {
			if !strings.Contains(got.Error(), words) {
				t.Errorf("%s: %q does not say %q", test.name, got, words)
			}
		}
		if !errors.Is(got, test.err) && !errors.As(got, new(*apierrors.StatusError)) {
			t.Errorf("%s: the cause is lost", test.name)
		}
	}
	if err := Explain(nil, ""); err != nil {
		t.Error(err)
	}
	if err := Explain(context.Canceled, ""); err != context.Canceled {
		t.Error(err)
	}
}

func TestNoHostNetwork(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	err := apierrors.NewForbidden(pods, "p",
		errors.New(`violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`))
	got := NoHostNetwork(err, "ns")
	if !errors.Is(got, result.ErrNotSupported) || !strings.Contains(got.Error(), "namespace ns refuses (violates "+
		"PodSecurity") {
		t.Errorf("%v", got)
	}
	if got := NoHostNetwork(apierrors.NewForbidden(pods, "p", errors.New("exceeded quota")), "ns"); got != nil {
		t.Errorf("%v", got)
	}
}

func FuzzRefused(f *testing.F) {
	f.Add(`pods is forbidden: User "a" cannot list resource "pods" in API group "" in the namespace "b"`)
	f.Add("exceeded quota")
	f.Fuzz(func(t *testing.T, text string) {
		if refusalText(text, "ns") == "" {
			t.Error("nothing is said")
		}
	})
}
