package site

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

func TestAgentFacts(t *testing.T) {
	g := &Group{Plan: manifest.Blueprint{Settings: manifest.Settings{Image: "debian:12", Inject: true},
		Placements: []target.Placement{{Path: target.PodPodOther}}, Nodes: [2]string{"node-1", "node-2"}}}
	g.sent = [2]parcel{{[]byte("abc"), "1", copying{name: "gzip"}}, {[]byte("abcd"), "2", copying{name: "gzip"}}}
	want := []result.Fact{
		{Name: "agent", Value: "injected"}, {Name: "agent-digest", Value: "client sha256:1, server sha256:2"},
		{Name: "agent-copy", Value: "client 3 bytes by gzip, server 4 bytes by gzip"},
	}
	if diff := cmp.Diff(want, g.agentFacts()); diff != "" {
		t.Error(diff)
	}
}
