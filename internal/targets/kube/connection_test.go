package kube

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: first
clusters:
- {name: one, cluster: {server: "https://one:6443", certificate-authority-data: Y2E=}}
- {name: two, cluster: {server: "https://two:6443"}}
contexts:
- {name: first, context: {cluster: one, user: alice}}
- {name: second, context: {cluster: two, user: bob}}
users:
- {name: alice, user: {token: alices}}
- {name: bob, user: {token: bobs}}
`

func loadConfig(t *testing.T, text string) (*rest.Config, error) {
	t.Helper()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(spec)
	if err != nil {
		return nil, err
	}
	c, err := o.Kubeconfig.Connect(t.Context())
	if err != nil {
		return nil, err
	}
	return c.Config, nil
}

// TestConnection checks that each option of the connection has the effect of kubectl's flag of the same name.
func TestConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	tests := map[string]func(c *rest.Config) bool{
		"kube:": func(c *rest.Config) bool {
			return c.Host == "https://one:6443" &&
				c.BearerToken == "alices"
		},
		"kube:second": func(c *rest.Config) bool {
			return c.Host == "https://two:6443" &&
				c.BearerToken == "bobs"
		},
		"kube:?context=second": func(c *rest.Config) bool {
			return c.Host == "https://two:6443" &&
				c.BearerToken == "bobs"
		},
		"kube:?cluster=two": func(c *rest.Config) bool {
			return c.Host == "https://two:6443" &&
				c.BearerToken == "alices"
		},
		"kube:?user=bob": func(c *rest.Config) bool {
			return c.Host == "https://one:6443" &&
				c.BearerToken == "bobs"
		},
		"kube:?server=https://three:1": func(c *rest.Config) bool {
			return c.Host == "https://three:1" &&
				c.BearerToken == "alices"
		},
		"kube:?as=carol":          func(c *rest.Config) bool { return c.Impersonate.UserName == "carol" },
		"kube:?as=carol&as-uid=7": func(c *rest.Config) bool { return c.Impersonate.UID == "7" },
		`kube:?as=c&as-group=a,b\,c`: func(c *rest.Config) bool {
			return slices.Equal(c.Impersonate.Groups, []string{"a", "b,c"})
		},
		"kube:?tls-server-name=api":           func(c *rest.Config) bool { return c.ServerName == "api" },
		"kube:?disable-compression=yes":       func(c *rest.Config) bool { return c.DisableCompression },
		"kube:?request-timeout=3s":            func(c *rest.Config) bool { return c.Timeout == 3*time.Second },
		"kube:?request-timeout=0":             func(c *rest.Config) bool { return c.Timeout == 0 },
		"kube:?kubeconfig=" + file:            func(c *rest.Config) bool { return c.Host == "https://one:6443" },
		"kube:?certificate-authority=" + file: func(c *rest.Config) bool { return c.CAFile == file && len(c.CAData) == 0 },
		"kube:?client-key=" + file + "&client-certificate=" + file: func(c *rest.Config) bool {
			return c.CertFile == file &&
				c.KeyFile == file
		},
		"kube:?insecure-skip-tls-verify=yes": func(c *rest.Config) bool {
			return c.Insecure &&
				len(c.CAData) == 0
		},
	}
	for text, right := range tests {
		spec, _ := result.ParseSpec(text)
		o, err := parse(spec)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, config, err := o.Kubeconfig.Load()
		if err != nil || !right(config) {
			t.Errorf("%s: %v, %v", text, config, err)
		}
	}
}

func TestConnectionErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	for text, want := range map[string]string{
		"kube:third":                       `no context "third"; it has first, second`,
		"kube:first?context=second":        "names the context first already",
		"kube:?cluster=three":              `cluster "three" does not exist`,
		"kube:?user=mallory":               `auth info "mallory" does not exist`,
		"kube:?kubeconfig=none":            "none: no such file",
		"kube:?request-timeout=soon":       "soon",
		"kube:?insecure-skip-tls-verify=1": "it is no or yes",
		"kube:?as-group=admins":            "without impersonating a user",
		"kube:?client-certificate=none":    "unable to read client-cert none",
		"kube:?insecure-skip-tls-verify=yes&certificate-authority=" + file: "insecure",
		"kube:?token=s3cret":         "users[].user.tokenFile",
		"kube:?password=s3cret&as=x": "users[].user.tokenFile",
	} {
		_, err := loadConfig(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if secret := strings.Contains(text, "s3cret"); errors.Is(err, cluster.ErrSecret) != secret {
			t.Errorf("%s: %v: is about a secret: %v", text, err, !secret)
		}
	}
}

// TestPodSettings checks that pod settings can be given in the option itself, and that errors name the wrong field.
func TestPodSettings(t *testing.T) {
	spec := result.Spec{Kind: "kube", Text: "kube:",
		Options: map[string]string{"config": `{"tolerations": [{"key": "spot", "operator": "Exists"}], ` +
			`"annotations": {"a": "b"}}`}}
	o, err := parse(spec)
	if err != nil || o.Pods.Tolerations[0].Key != "spot" || o.Pods.Annotations["a"] != "b" ||
		o.Pods.Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("%+v, %v", o.Pods, err)
	}
	for text, want := range map[string]string{
		"resources: {requests: {cpu: lots}}":         "resources: ",
		"annotations: [a]":                           "annotations: ",
		"toleration: []":                             `toleration: unknown field "toleration"`,
		"tolerations: [{keys: a}]":                   `tolerations: unknown field "keys"`,
		"labels: {app.kubernetes.io/managed-by: me}": "is Knotmeter's own",
		"annotations: {a: b}\nannotations: {c: d}":   `"annotations" already set`,
		"annotations:\n  a: b\n tolerations: []":     "line 2",
	} {
		if err := new(manifest.PodSettings).Unmarshal([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
