package kube

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// TestNoFamily checks that an IP version that a cluster lacks is refused on the paths that need it, and on no others.
func TestNoFamily(t *testing.T) {
	pod := func(hostNetwork bool) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{HostNetwork: hostNetwork},
			Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.2"}}},
		}
	}
	invalid := func(path string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "s",
			field.ErrorList{field.Invalid(field.NewPath("spec").Child(path).Index(0), "IPv6", "not configured on this cluster")})
	}
	for _, test := range []struct {
		name  string
		err   error
		paths func(result.Path) bool
		says  []string
	}{
		{"pods", diagnosis.NoAddress(pod(false), corev1.IPv6Protocol), result.Path.ServerPod,
			[]string{"pods have no IPv6 addresses", "p has 10.0.0.2"}},
		{"nodes", diagnosis.NoAddress(pod(true), corev1.IPv6Protocol), func(p result.Path) bool { return !p.ServerPod() },
			[]string{"nodes have no IPv6"}},
		{"services", diagnosis.NoServiceFamily(invalid("ipFamilies"), corev1.IPv6Protocol), result.Path.Service,
			[]string{"Services have no IPv6", "not configured"}},
		{"host network", result.NotSupported("no pods in the nodes' network"),
			func(p result.Path) bool { return !p.ClientPod() || !p.ServerPod() }, []string{"nodes' network"}},
	} {
		if !errors.Is(test.err, result.ErrNotSupported) {
			t.Errorf("%s: %v is not about what is not supported", test.name, test.err)
		}
		for _, words := range test.says {
			if !strings.Contains(test.err.Error(), words) {
				t.Errorf("%s: %v does not say %q", test.name, test.err, words)
			}
		}
		k := &named{refused: map[result.Path]error{}}
		k.refusePaths(test.err)
		for _, p := range result.Paths() {
			if got := k.refused[p] != nil; got != test.paths(p) {
				t.Errorf("%s: %s is refused: %v", test.name, p, got)
			}
		}
	}
	for name, err := range map[string]error{"nothing": nil, "something else": errors.New("spec.ipFamilies"),
		"another field": invalid("ports")} {
		if why := diagnosis.NoServiceFamily(err, corev1.IPv6Protocol); why != nil {
			t.Errorf("%s: %v", name, why)
		}
	}
	if why := diagnosis.NoServiceFamily(invalid("ipFamilies"), ""); why != nil {
		t.Errorf("without ip=: %v", why)
	}
}
