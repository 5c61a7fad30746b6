package inspection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestPin checks that the first image of an architecture has to run until the end, on all nodes of that architecture.
func TestPin(t *testing.T) {
	pod := func(node, id string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ContainerName, ImageID: id}}
		return p
	}
	for _, test := range []struct {
		name, image string
		pods        [][3]string // node, architecture, image ID
		says        []string
	}{
		{"equal", "x:1", [][3]string{{"a", "amd64", "r/x@sha256:1"}, {"b", "amd64", "docker.io/x@sha256:1"},
			{"a", "amd64", "sha256:1"}}, nil},
		{"unknown", "x:1", [][3]string{{"a", "amd64", ""}, {"b", "amd64", "sha256:1"}}, nil},
		{"two architectures", "x:1", [][3]string{{"a", "amd64", "sha256:1"}, {"b", "arm64", "sha256:2"},
			{"a", "amd64", "sha256:1"}}, nil},
		{"two nodes", "x:1", [][3]string{{"a", "amd64", "sha256:1"}, {"b", "amd64", "sha256:2"}},
			[]string{"not the same everywhere", "node a runs sha256:1, node b runs sha256:2", "by its digest"}},
		{"changed", "x:1", [][3]string{{"a", "amd64", "sha256:1"}, {"a", "amd64", "sha256:2"}},
			[]string{"has changed during the experiment", "node a ran sha256:1, and now runs sha256:2"}},
		{"by digest", "x@sha256:1", [][3]string{{"a", "amd64", "sha256:1"}, {"b", "amd64", "sha256:2"}},
			[]string{"do not keep to the digest"}},
	} {
		pin, err := new(Pin), error(nil)
		for _, p := range test.pods {
			if err == nil {
				err = pin.Check(test.image, ImageOf(pod(p[0], p[2]), p[1]))
			}
		}
		if (err == nil) != (test.says == nil) {
			t.Errorf("%s: %v", test.name, err)
		}
		for _, words := range test.says {
			if err != nil && !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v does not say %q", test.name, err, words)
			}
		}
	}
}
