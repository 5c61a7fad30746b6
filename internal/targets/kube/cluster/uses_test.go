package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/result"
)

const usedKubeconfig = `
apiVersion: v1
kind: Config
current-context: mine
clusters:
- {name: near, cluster: {server: "https://near:6443"}}
- {name: far, cluster: {server: "https://far:6443", proxy-url: "http://between:3128"}}
- {name: guarded, cluster: {server: "https://far:6443", proxy-url: "http://me:secret@between:3128"}}
- {name: odd, cluster: {server: "https://far:6443", proxy-url: "http://me:secret@between:31 28"}}
contexts:
- {name: mine, context: {cluster: near, user: plain}}
- {name: theirs, context: {cluster: far, user: plugin}}
users:
- {name: plain, user: {}}
- {name: reader, user: {tokenFile: /var/token}}
- {name: provided, user: {auth-provider: {name: oidc}}}
- name: plugin
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, "echo $HOME"], interactiveMode: Never}
`

func TestUses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(usedKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"kube:":                    {"the API server https://near:6443"},
		"kube:?server=https://own": {"the API server https://own"},
		"kube:?user=reader":        {"the API server https://near:6443", "the token in the file /var/token"},
		"kube:?user=provided":      {"the API server https://near:6443", "the way to credentials named oidc"},
		"kube:theirs": {"the API server https://far:6443", "the proxy http://between:3128",
			"the program that is run for credentials: sh -c echo $HOME"},
		"kube:?context=theirs": {"the API server https://far:6443", "the proxy http://between:3128",
			"the program that is run for credentials: sh -c echo $HOME"},
		"kube:?cluster=guarded": {"the API server https://far:6443", "the proxy http://me:xxxxx@between:3128"},
		"kube:?cluster=odd":     {"the API server https://far:6443", "the proxy (not a URL)"},
		"kube:theirs?cluster=near": {"the API server https://near:6443", "the program that is run for credentials: sh -c " +
			"echo $HOME"},
		"kube:nobody": nil,
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Uses(spec.With(map[string]string{"kubeconfig": file}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, name := range []string{"/dev/zero", t.TempDir(), filepath.Join(t.TempDir(), "gone")} {
		got := Uses(result.Spec{Kind: "kube", Options: map[string]string{"kubeconfig": name}})
		if len(got) != 1 || !strings.HasPrefix(got[0], "the kubeconfig "+name+", of which nothing is known: ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestPin checks that a target without a context gets the current one and keeps its label, and that an unreadable
// kubeconfig changes nothing.
func TestPin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(usedKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for text, want := range map[string]string{
		"kube:":                         "kube:?context=mine&label=kube:",
		"kube:?label=a":                 "kube:?label=a&context=mine",
		"kube:theirs":                   "kube:theirs",
		"kube:?context=theirs":          "kube:?context=theirs",
		"kube:?kubeconfig=/nonexistent": "kube:?kubeconfig=/nonexistent",
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		pinned := PinContext(spec)
		if pinned.Text != want || pinned.Label() != spec.Label() {
			t.Errorf("%s is pinned as %s, want %s", text, pinned.Text, want)
		}
		if again, err := result.ParseSpec(pinned.Text); err != nil || PinContext(again).Text != want {
			t.Errorf("%s is not pinned for good: %v", text, err)
		}
	}
}

// TestContexts checks that contexts are sorted by name, and that an unreadable kubeconfig has none.
func TestContexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(usedKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		file: {"mine", "theirs"}, broken: nil, "/dev/zero": nil, filepath.Join(t.TempDir(), "gone"): nil,
	} {
		options := map[string]string{"kubeconfig": name, "context": "theirs"}
		if diff := cmp.Diff(want, Contexts(result.Spec{Kind: "kube", Name: "th", Options: options})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
