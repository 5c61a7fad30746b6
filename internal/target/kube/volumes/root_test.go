package volumes

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/access"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

func rootOf(t *testing.T, api *fake.Clientset) (*Storage, *Volume) {
	t.Helper()
	st := NewStorage(api, manifest.Volume{Given: true, Use: manifest.Root, Size: resource.MustParse("5Gi")},
		access.Need{NoClaims: true})
	v, err := st.Plan(t.Context(), &manifest.Blueprint{Experiment: "abc", Site: 7, Nodes: [2]string{"node-1", "node-1"}})
	if err != nil {
		t.Fatal(err)
	}
	return st, v
}

// From its plan to its end, the container's own root directory takes no request to the API server.
func TestRootAsksNothing(t *testing.T) {
	api := fake.NewClientset()
	st, v := rootOf(t, api)
	seen := &preflight.Volume{Size: 100 << 30, Free: 40 << 30, Content: []string{"of the image"},
		Facts: []result.Fact{{Name: "backing", Value: "overlay"}}}
	missing, err := access.Lacking(t.Context(), api, st.need, target.Placement{Volume: true}, nil)
	if len(missing) > 0 {
		t.Errorf("missing rights: %v", missing)
	}
	if err := errors.Join(err, st.LookUp(t.Context()), v.Provision(t.Context()), v.Check(seen), v.Remove(t.Context()),
		st.Leave(t.Context(), "bench", "abc")); err != nil {
		t.Error(err)
	}
	want := host.Volume{Path: "/tmp", Size: 5 << 30, Kept: "knotmeter-abc-7-client"}
	if got := st.Offer(v); got != want {
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
	if st.Made() || len(api.Actions()) > 0 {
		t.Errorf("made: %v; requests: %v", st.Made(), api.Actions())
	}
}

// No more than half of what is free on the node is used, and what cannot be used is refused with the reason.
func TestRootLimits(t *testing.T) {
	for _, test := range []struct {
		seen preflight.Volume
		size int64
		want string
	}{
		{preflight.Volume{Free: 6 << 30}, 3 << 30, ""},
		{preflight.Volume{Free: 128 << 20}, 64 << 20, ""},
		{preflight.Volume{Free: 100 << 20}, 50 << 20, "on node node-1 104857600 bytes are free"},
		{preflight.Volume{Error: "/tmp is not there"}, 0, "on node node-1 /tmp is not there; with volume=root the image"},
	} {
		_, v := rootOf(t, fake.NewClientset())
		test.seen.Content = []string{}
		err := v.Check(&test.seen)
		if v.usable() != test.size || (err == nil) != (test.want == "") || err != nil &&
			(!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %d, %v", test.seen, v.usable(), err)
		}
	}
}
