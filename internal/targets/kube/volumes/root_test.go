package volumes

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func rootOf(t *testing.T, api *fake.Clientset) (*Storage, *Volume) {
	t.Helper()
	st := NewStorage(api, manifest.Volume{Given: true, Use: manifest.Root, Size: resource.MustParse("5Gi")},
		cluster.RightsScope{NoClaims: true})
	v, err := st.Plan(t.Context(), &manifest.Blueprint{Experiment: "abc", Site: 7, Nodes: [2]string{"node-1", "node-1"}})
	if err != nil {
		t.Fatal(err)
	}
	return st, v
}

// TestRootAsksNothing checks that a root directory as the volume needs no request to the API server, from its plan to
// its removal.
func TestRootAsksNothing(t *testing.T) {
	api := fake.NewClientset()
	st, v := rootOf(t, api)
	seen := &machine.VolumeState{Size: 100 << 30, Free: 40 << 30, Content: []string{"of the image"},
		Facts: []result.Fact{{Name: "backing", Value: "overlay"}}}
	missing, err := cluster.MissingRights(t.Context(), api, st.need, targets.Placement{Volume: true})
	if len(missing) > 0 {
		t.Errorf("missing rights: %v", missing)
	}
	if err := errors.Join(err, st.LookUp(t.Context()), v.Provision(t.Context()), v.Check(seen, &corev1.Pod{}),
		v.Remove(t.Context()), st.RemoveReused(t.Context(), "bench", "abc")); err != nil {
		t.Error(err)
	}
	want := host.Volume{Path: "/tmp", Size: 5 << 30, Kept: "knotmeter-abc-7-client"}
	if got := st.HostVolume(v); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if list := append(v.Health(t.Context()), result.Joined(v.Warnings())); strings.Join(list, "") != "" {
		t.Errorf("%v", list)
	}
	facts := append(st.Facts(t.Context(), nil), v.Facts()...)
	for name, want := range map[string]string{"volume-rule": rootRule, "volume-size-asked": "5Gi", "volume": rootRule,
		"volume-usable": "5368709120 B", "backing": "overlay"} {
		if got := result.FactOf(facts, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if st.MayHaveClaims() || len(api.Actions()) > 0 {
		t.Errorf("made: %v; requests: %v", st.MayHaveClaims(), api.Actions())
	}
}

// TestRootLimits checks that at most half of the free space of the node is used, and that unusable root directories are
// refused with the reason.
func TestRootLimits(t *testing.T) {
	for _, test := range []struct {
		seen machine.VolumeState
		size int64
		want string
	}{
		{machine.VolumeState{Free: 6 << 30}, 3 << 30, ""},
		{machine.VolumeState{Free: 128 << 20}, 64 << 20, ""},
		{machine.VolumeState{Free: 100 << 20}, 50 << 20, "on node node-1 104857600 of 0 bytes are free"},
		{machine.VolumeState{Mounted: true}, 0, "something is mounted on /tmp in the pod knotmeter-abc-7-client"},
		{machine.VolumeState{
			Facts: []result.Fact{{Name: "filesystem", Value: "tmpfs"}, {Name: "backing", Value: "memory"}}}, 0,
			"on node node-1 are in memory (tmpfs)"},
		{machine.VolumeState{Error: "/tmp is not there"}, 0, "on node node-1 /tmp is not there; with volume=root the image"},
	} {
		_, v := rootOf(t, fake.NewClientset())
		test.seen.Content = []string{}
		err := v.Check(&test.seen, &corev1.Pod{})
		if v.usable() != test.size || (err == nil) != (test.want == "") || err != nil &&
			(!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %d, %v", test.seen, v.usable(), err)
		}
	}
}

// TestUsableRoot checks that writing to a root directory leaves the kubelet's default share of the disk free, so that
// no pod is evicted.
func TestUsableRoot(t *testing.T) {
	for name, test := range map[string]struct{ size, free, asked, limit, filling, want int64 }{
		"as asked":                           {1000, 900, 100, 0, 1, 100},
		"half of what is spare":              {1000, 500, 800, 0, 1, 200},
		"half of what is spare, of two pods": {1000, 500, 800, 0, 2, 100},
		"what the kubelet keeps":             {1000, 200, 800, 0, 1, 50},
		"all but nothing":                    {1000, 151, 800, 0, 1, 1},
		"what the kubelet keeps, of five":    {1000, 160, 800, 0, 5, 2},
		"the kubelet keeps less":             {1000, 140, 800, 0, 1, 20},
		"never below a tenth":                {1000, 100, 800, 0, 1, 0},
		"a limit with some room":             {1000, 900, 100, 100, 1, 90},
		"a limit above what is asked":        {1000, 900, 100, 200, 1, 100},
		"a limit above what is spare":        {1000, 140, 800, 800, 1, 20},
	} {
		v := machine.VolumeState{Size: test.size, Free: test.free}
		if got := usableRoot(v, test.asked, test.limit, test.filling); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// TestUsableShared checks that a volume which is a directory on a larger file system is used up to the size that its
// claim got, and that several of them leave a tenth of the file system free together.
func TestUsableShared(t *testing.T) {
	const gib = 1 << 30
	for name, test := range map[string]struct{ got, size, free, filling, want int64 }{
		"a volume of its own":      {10, 10, 10, 2, 9},
		"a directory":              {10, 500, 400, 2, 10},
		"a directory, little free": {30, 100, 50, 2, 20},
		"a directory, nothing":     {30, 100, 10, 1, 0},
	} {
		v := Volume{observed: machine.VolumeState{Size: test.size * gib, Free: test.free * gib}, filling: test.filling,
			claim: &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Capacity: corev1.ResourceList{
				corev1.ResourceStorage: *resource.NewQuantity(test.got*gib, resource.BinarySI)}}}}
		if got := v.usable(); got/gib != test.want {
			t.Errorf("%s: %d bytes, want %d GiB", name, got, test.want)
		}
	}
}

// TestRootOfLimitedPod checks that the ephemeral-storage limit of the running pod, possibly set by a LimitRange, bounds
// the usable size.
func TestRootOfLimitedPod(t *testing.T) {
	for text, want := range map[string]string{"1Gi": "", "64Mi": "has a limit of 67108864 bytes of ephemeral storage"} {
		limit := resource.MustParse(text)
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: manifest.ContainerName,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceEphemeralStorage: limit}}}}}}
		_, v := rootOf(t, fake.NewClientset())
		err := v.Check(&machine.VolumeState{Size: 100 << 30, Free: 40 << 30, Content: []string{}}, pod)
		if v.usable() != limit.Value()/10*9 || (err == nil) != (want == "") || err != nil &&
			(!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %d, %v", text, v.usable(), err)
		}
	}
}
