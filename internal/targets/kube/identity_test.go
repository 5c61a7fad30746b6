package kube

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// TestOtherCluster checks that a resumed experiment does not begin on another cluster. The UID identifies a cluster, or
// else its address.
func TestOtherCluster(t *testing.T) {
	const namespaces = "/api/v1/namespaces"
	clusterOf := func(uid any) *kubeTarget {
		answer := uid
		if text, is := uid.(string); is {
			answer = object{"kind": "NamespaceList", "apiVersion": "v1", "items": []object{{"metadata": object{"uid": text}}}}
		}
		k := newTarget(parseOptions(t, "kube:"), nil, nil)
		c, _ := serve(t, map[string]any{namespaces: answer})
		k.reached = &reached{named: k.named, cluster: c}
		return k
	}
	begin := func(k *kubeTarget, earlier ...result.Fact) error {
		_, err := k.Begin(t.Context(), targets.Plan{Experiment: "x", Earlier: earlier})
		return err
	}
	first := clusterOf("u1").reached.identity(t.Context())
	server := func(k *kubeTarget) result.Fact {
		return result.Fact{Name: "api-server", Value: k.reached.cluster.Host()}
	}
	if first[1] != (result.Fact{Name: "cluster-uid", Value: "u1"}) {
		t.Fatalf("%v", first)
	}
	if err := begin(clusterOf("u1"), first...); err != nil {
		t.Errorf("the same cluster at another address: %v", err)
	}
	if err := begin(clusterOf("u2")); err != nil {
		t.Errorf("a new experiment: %v", err)
	}
	err := begin(clusterOf("u2"), first...)
	if err == nil || !strings.Contains(err.Error(), "it was the API server "+first[0].Value+" with the UID u1; use") {
		t.Errorf("another cluster: %v", err)
	}
	denied := clusterOf(http.StatusForbidden)
	if err := begin(denied, server(denied), result.Fact{Name: "cluster-uid", Value: "u1"}); err != nil {
		t.Errorf("the same address, without the right to see the UID: %v", err)
	}
	if err := begin(denied, first...); err == nil {
		t.Error("another address, without the right to see the UID, is taken for the same cluster")
	}
}

// TestWhere checks that a cluster counts as this machine's own only if its API server has a loopback address and is
// reached without a proxy.
func TestWhere(t *testing.T) {
	for server, shared := range map[string]bool{
		"https://127.0.0.1:6443": false, "https://localhost": false, "http://[::1]:80": false,
		"https://10.199.0.1:6443": true, "https://gke.example": true,
		`https://127.0.0.1:6443", proxy-url: "http://between:3128`: true,
	} {
		file := filepath.Join(t.TempDir(), "config")
		text := strings.Replace(kubeconfig, "https://one:6443", server, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		words, others, err := newTarget(parseOptions(t, "kube:?kubeconfig="+file), nil, nil).Where()
		url, _, _ := strings.Cut(server, `"`)
		if err != nil || others != shared || words != "context first, the API server "+url {
			t.Errorf("%s: %q, shared %t, %v", server, words, others, err)
		}
	}
	unreadable := newTarget(parseOptions(t, "kube:none?kubeconfig=/nonexistent"), nil, nil)
	if _, shared, err := unreadable.Where(); err == nil || !shared {
		t.Errorf("what cannot be read is taken for this machine's own: %v", err)
	}
}
