package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeCluster starts an API server that knows one worker node and a UID. It returns a kubeconfig for it and the list of
// requests that are not reads.
func fakeCluster(t *testing.T, uid string) (kubeconfig string, changes *[]string) {
	t.Helper()
	changes = new([]string)
	answers := map[string]string{
		"/api/v1/nodes": `{"kind": "NodeList", "apiVersion": "v1", "items": [{"metadata": {"name": "w"},
			"status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`,
		"/api/v1/namespaces": `{"kind": "NamespaceList", "apiVersion": "v1",
			"items": [{"metadata": {"uid": "` + uid + `"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			*changes = append(*changes, r.Method+" "+r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	return write(t, t.TempDir(), "kubeconfig", `
apiVersion: v1
kind: Config
current-context: fake
clusters: [{name: fake, cluster: {server: "`+server.URL+`"}}]
contexts: [{name: fake, context: {cluster: fake, user: nobody}}]
users: [{name: nobody, user: {}}]
`), changes
}

// write writes a file and returns its name.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestResumeOnOtherCluster checks that an experiment is not resumed on another cluster, even if that is the
// kubeconfig's current context now, and nothing is changed there.
func TestResumeOnOtherCluster(t *testing.T) {
	kubeconfig, changes := fakeCluster(t, "u2")
	dir := t.TempDir()
	write(t, dir, "experiment.json", `{
		"schema": "knotmeter/experiment/v2", "experiment": "x", "created": "2026-12-01T08:00:00Z", "version": "v1",
		"seed": 1, "suite": "network", "tool": "native", "baseline": "a", "not_measured": [],
		"design": {"kind": "randomised complete blocks", "blocks": 1, "duration": 1, "warmup": 0, "alpha": 0.05,
			"delta": 0.02},
		"targets": [{"name": "a", "spec": "kube:?label=a&kubeconfig=`+kubeconfig+`"}],
		"cases": [{"name": "pod-pod/same/tcp-rr", "role": "primary", "metric": "p50"}]}`)
	write(t, dir, "runs.ndjson", "")
	write(t, dir, "sessions.ndjson", "")
	write(t, dir, "facts/a.json", `[{"name": "api-server", "value": "https://there:6443"},
		{"name": "cluster-uid", "value": "u1"}]`)
	var said strings.Builder
	status := Main(t.Context(), Streams{Out: &said, Err: &said}, "test", []string{"run", "--resume", dir, "--yes"})
	if status != statusUsage || !strings.Contains(said.String(), "another cluster than the one that was measured") ||
		len(*changes) > 0 {
		t.Errorf("status %d, %q changed:\n%s", status, *changes, &said)
	}
}
