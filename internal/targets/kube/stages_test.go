package kube

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// TestUnreached checks that a cluster that does not answer supports what the options allow, opens nothing, and leaves
// nothing to close.
func TestUnreached(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	const text = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
		clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k, p := newTarget(parseOptions(t, "kube:?kubeconfig="+file), nil, nil), targets.Placement{Path: result.PodPodOther}
	if err := k.Supports(p); err != nil {
		t.Errorf("Supports: %v", err)
	}
	for range 2 {
		if _, err := targets.OpenOne(t.Context(), k, p); !errors.Is(err, targets.ErrUnavailable) {
			t.Errorf("Open: %v", err)
		}
	}
	if _, err := k.Begin(t.Context(), targets.Plan{Placements: []targets.Placement{p}}); err == nil ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("Begin: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
