package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestInjectedPod checks that injection adds a volume in memory with a size limit, and otherwise changes only the
// command.
func TestInjectedPod(t *testing.T) {
	b := blueprint(t, "kube:?image=debian:12&inject=yes", result.PodPodOther)
	with := b.Pod(manifest.Server)
	b.Settings.Inject = false
	without := b.Pod(manifest.Server)
	if with.Spec.Volumes[1].EmptyDir.Medium != corev1.StorageMediumMemory ||
		with.Spec.Volumes[1].EmptyDir.SizeLimit.Cmp(resource.MustParse(manifest.InjectSize)) != 0 {
		t.Errorf("%+v", with.Spec.Volumes[1])
	}
	with.Spec.Volumes = with.Spec.Volumes[:1]
	c := &with.Spec.Containers[0]
	c.VolumeMounts = c.VolumeMounts[:1]
	c.Command, c.Stdin = without.Spec.Containers[0].Command, false
	if diff := cmp.Diff(without, with); diff != "" {
		t.Error(diff)
	}
}
