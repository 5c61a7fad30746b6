package kube

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func TestVolumeManifests(t *testing.T) {
	for name, text := range map[string]string{
		"volume-filesystem": "kube:?storage-class=fast",
		"volume-block":      "kube:?volume-mode=block&size=20Gi&access-mode=ReadWriteMany&volume=reuse",
	} {
		b := volumeBlueprint(t, text)
		b.Reuse = b.Settings.Volume.Use == manifest.Reuse
		golden.Check(t, "testdata/"+name+".yaml", manifests(t, b.Claim(b.Settings.Volume.Class, !b.Reuse),
			b.Pod(manifest.Client)))
	}
}

// TestRootManifest checks that volume=root needs no claim, and requests the space to write from the node. Settings of
// other pods do not change.
func TestRootManifest(t *testing.T) {
	b := volumeBlueprint(t, "kube:?volume=root&size=5Gi")
	golden.Check(t, "testdata/volume-root.yaml", manifests(t, b.Pod(manifest.Client)))
	if _, is := b.Settings.Pods.Resources.Requests[corev1.ResourceEphemeralStorage]; is {
		t.Error("all pods request ephemeral storage")
	}
	if other := blueprint(t, "kube:?volume=root", result.PodPodSame).Pod(manifest.Client); len(other.Spec.Volumes) != 1 ||
		!*other.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("a pod of a path may write to its root directory: %+v", other.Spec)
	}
}

func TestVolumeOptions(t *testing.T) {
	for text, want := range map[string]string{
		"kube:?storage-class=No_Name":                 "option storage-class=No_Name: no name in Kubernetes",
		"kube:?access-mode=ReadOnlyMany":              "what is measured is written first",
		"kube:?access-mode=rwo":                       "it is ReadWriteOnce, ReadWriteOncePod or ReadWriteMany",
		"kube:?volume-mode=raw":                       "it is filesystem or block",
		"kube:?size=10":                               "it is a size from 64Mi on",
		"kube:?size=big":                              "it is a size from 64Mi on",
		"kube:?volume=old":                            "it is fresh",
		"kube:?volume=reuse&rotate-nodes=yes":         "a volume that stays is measured on one node",
		"kube:?volume=fresh&rotate-nodes=yes":         "",
		"kube:?volume=root&storage-class=fast":        "volume=root and storage-class=fast",
		"kube:?volume=root&access-mode=ReadWriteOnce": "volume=root and access-mode=ReadWriteOnce",
		"kube:?volume=root&volume-mode=block":         "volume=root and volume-mode=block",
		"kube:?volume=root&size=5Gi&rotate-nodes=yes": "",
		"kube:?storage-class=fast.example&size=1Ti":   "",
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(spec)
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, result.ErrSpec) || !strings.Contains(err.Error(),
			want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
