package site

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func TestAgentFacts(t *testing.T) {
	g := &Group{Plan: manifest.Blueprint{Settings: manifest.Settings{Image: "debian:12", Inject: true},
		Placements: []targets.Placement{{Path: result.PodPodOther}}, Nodes: [2]string{"node-1", "node-2"}}}
	by := copyMethod{name: "gzip"}
	g.payloads = [2]payload{{[]byte("abc"), "1", by}, {[]byte("abcd"), "2", by}}
	want := []result.Fact{
		{Name: "agent", Value: "injected"}, {Name: "agent-digest", Value: "client sha256:1, server sha256:2"},
		{Name: "agent-copy", Value: "client 3 bytes by gzip, server 4 bytes by gzip"},
	}
	if diff := cmp.Diff(want, g.agentFacts()); diff != "" {
		t.Error(diff)
	}
}

// TestSourceOf checks that it is unknown whether the client's address was translated if one of the two addresses is
// unknown.
func TestSourceOf(t *testing.T) {
	pod, node := netip.MustParseAddr("10.244.0.2"), netip.MustParseAddr("10.0.0.1")
	for _, test := range []struct {
		own, seen netip.Addr
		want      string
	}{
		{pod, pod, "preserved"}, {pod, node, "translated to 10.0.0.1"},
		{netip.Addr{}, node, result.Unknown}, {pod, netip.Addr{}, result.Unknown},
	} {
		if got := sourceOf(test.own, test.seen); got != test.want {
			t.Errorf("%v seen as %v: %q, want %q", test.own, test.seen, got, test.want)
		}
	}
}
