package kube

import (
	"errors"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// TestJudge checks that errors of the whole target are distinguished from those of a case.
func TestJudge(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	denied := apierrors.NewForbidden(pods, "",
		errors.New(`User "u" cannot create resource "pods" in API group "" in the namespace "n"`))
	quota := apierrors.NewForbidden(pods, "", errors.New("exceeded quota: few"))
	noNamespace := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n")
	ending := apierrors.NewForbidden(pods, "", errors.New("because it is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err         error
		unavailable bool
	}{
		"a right":       {diagnosis.Explain(denied, "n"), true},
		"both":          {errors.Join(diagnosis.Explain(denied, "n"), diagnosis.Explain(denied, "n")), true},
		"a quota":       {diagnosis.Explain(quota, "n"), false},
		"namespace":     {diagnosis.Explain(noNamespace, "n"), true},
		"ending":        {diagnosis.Explain(ending, "n"), true},
		"nobody there":  {diagnosis.Explain(&net.OpError{Op: "dial", Err: errors.New("refused")}, "n"), true},
		"not supported": {result.NotSupported("no such path"), false},
		"anything":      {errors.New("anything"), false},
	} {
		k := &reached{named: &named{}, cluster: &cluster.Cluster{Interface: fake.NewClientset()}}
		if err := k.markUnavailable(t.Context(), test.err); errors.Is(err, targets.ErrUnavailable) != test.unavailable ||
			err.Error() != test.err.Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
