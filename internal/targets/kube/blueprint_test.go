package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/site"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
	"github.com/knotmeter/knotmeter/internal/vault"
)

func manifests(t *testing.T, objects ...any) string {
	t.Helper()
	var text strings.Builder
	for _, o := range objects {
		part, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(part))
	}
	return text.String()
}

func parseOptions(t *testing.T, text string) options {
	t.Helper()
	spec, err := result.ParseSpec(text)
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// allNeeds returns what the cases of all paths need, and those that ask the API server.
func allNeeds() []targets.Placement {
	return append(targettest.On(result.Paths()...), family.List{api.Family(), dynamics.Family()}.Needs()...)
}

func blueprint(t *testing.T, text string, path result.Path) manifest.Blueprint {
	return blueprintOf(t, text, targets.Placement{Path: path})
}

func volumeBlueprint(t *testing.T, text string) manifest.Blueprint {
	return blueprintOf(t, text, targets.Placement{Volume: true})
}

func blueprintOf(t *testing.T, text string, p targets.Placement) manifest.Blueprint {
	return manifest.Blueprint{
		Settings: parseOptions(t, text).Settings, Namespace: "knotmeter-abc", Experiment: "abc", Site: 7,
		Placements: []targets.Placement{p}, Nodes: [2]string{"node-1", "node-2"},
	}
}

func vaultPlan(t *testing.T, text string) site.VaultPlan {
	client := blueprintOf(t, text, targets.Placement{Application: vault.Name})
	return site.VaultPlan{Blueprint: client, Wanted: parseOptions(t, text).Vault}
}

func TestManifests(t *testing.T) {
	for name, b := range map[string]manifest.Blueprint{
		"pod-svc-other": blueprint(t, "kube:", result.PodSvcOther),
		"pod-node":      blueprint(t, "kube:?image=registry.example/agent@sha256:abc&port=7000", result.PodNodeOther),
		"injected":      blueprint(t, "kube:?image=debian:12&inject=yes", result.PodPodOther),
		"multus-ipv6": blueprint(t, "kube:?runtime-class=kata&network=fast&config=testdata/settings.yaml&ip=6",
			result.PodPodOther),
		"sriov": blueprint(t, "kube:?default-network=kube-system/sriov&config={resources: {requests: {intel.com/vf: 1}, "+
			"limits: {intel.com/vf: 1}}}", result.PodNodeOther),
		"enrolled": blueprint(t, "kube:?namespace-labels=istio.io/dataplane-mode=ambient&pod-labels=team=net&"+
			"pod-annotations=linkerd.io/inject=enabled", result.PodPodOther),
		"profiled": blueprint(t, "kube:?profile=yes", result.PodPodSame),
	} {
		objects := []any{manifest.NewNamespace(b.Namespace, b.Experiment, manifest.LevelPrivileged,
			b.Settings.NamespaceLabels)}
		if b.UsesService() {
			objects = append(objects, b.Service())
		}
		golden.Check(t, "testdata/"+name+".yaml", manifests(t, append(objects, b.Pod(manifest.Server),
			b.Pod(manifest.Client))...))
	}
}

// TestRestricted checks that pods satisfy the restricted Pod Security Standard, except for the network of their node.
// The rules are those of https://kubernetes.io/docs/concepts/security/pod-security-standards/.
func TestRestricted(t *testing.T) {
	for i, path := range append(result.Paths(), result.Paths()...) {
		b := blueprint(t, "kube:?image=x:1", path)
		b.Settings.Inject = i >= len(result.Paths())
		for _, r := range []manifest.Role{manifest.Client, manifest.Server} {
			p := b.Pod(r).Spec
			c := p.Containers[0].SecurityContext
			switch {
			case p.HostNetwork == b.InPod(r):
				t.Errorf("%s: the %s's network is the node's: %v", path, r, p.HostNetwork)
			case !*p.SecurityContext.RunAsNonRoot || *p.SecurityContext.RunAsUser == 0:
				t.Errorf("%s: the %s may be root", path, r)
			case p.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
				t.Errorf("%s: the %s has no seccomp profile", path, r)
			case *c.AllowPrivilegeEscalation || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) ||
				len(c.Capabilities.Add) > 0:
				t.Errorf("%s: the %s has capabilities", path, r)
			case p.HostPID || p.HostIPC || c.Privileged != nil || len(p.Containers[0].Ports) > 0 ||
				*p.AutomountServiceAccountToken || !*c.ReadOnlyRootFilesystem:
				t.Errorf("%s: the %s has more than it needs", path, r)
			}
			for _, v := range p.Volumes {
				if v.EmptyDir == nil {
					t.Errorf("%s: the %s has the volume %s", path, r, v.Name)
				}
			}
		}
	}
}

func TestHostNames(t *testing.T) {
	want := map[result.Path][2]string{
		result.NodeNode:     {"node-1", "node-2"},
		result.PodNodeOther: {"node-1/pod", "node-2"},
		result.PodPodOther:  {"node-1/client", "node-2/server"},
		result.NodeSvcOther: {"node-1", "node-2/pod"},
		result.PodSvcOther:  {"node-1/client", "node-2/server"},
	}
	for path, names := range want {
		b := blueprint(t, "kube:", path)
		if got := [2]string{b.HostName(manifest.Client), b.HostName(manifest.Server)}; got != names {
			t.Errorf("%s: %v, wanted %v", path, got, names)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"kube:a?colour=red":                      `no option "colour"`,
		"kube:?namespace=A_b":                    "namespace=A_b",
		"kube:?image=a b":                        "no image",
		"kube:?zones=both":                       "same or across",
		"kube:?rotate-nodes=1":                   "no or yes",
		"kube:?host-network=false":               "no or yes",
		"kube:?ip=5":                             "4 or 6",
		"kube:?port=80":                          "from 1024",
		"kube:?port=x":                           "from 1024",
		"kube:?node-selector=a===b":              "node-selector",
		"kube:?network=a/b/c":                    "NetworkAttachmentDefinition",
		"kube:?default-network=fast":             "NAMESPACE/NAME",
		"kube:?default-network=a/B":              "default-network=a/B",
		"kube:?network=a&default-network=a/b":    "not both",
		"kube:?inject=yes":                       "needs image=",
		"kube:?image=x&inject=true":              "no or yes",
		"kube:?config=testdata/none.yaml":        "none.yaml",
		"kube:?config=testdata/wrong.yaml":       "wrong.yaml",
		"kube:?config=testdata/reserved.yaml":    "Knotmeter's own",
		"kube:?client-node=a&server-node=a":      "same node",
		"kube:?server-node=a":                    "needs client-node",
		"kube:?server-node=-":                    "server-node=-",
		"kube:?runtime-class=":                   "runtime-class",
		"kube:?client-node=a&server-node=B&ip=4": "server-node=B",
	} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(spec, nil, nil); !errors.Is(err, result.ErrSpec) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"kube:a?node-selector=a%3Db,c", "kube:?image=x&port=6000",
		"kube:?network=a/b&zones=across"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := result.ParseSpec(text)
		if err != nil || spec.Options["config"] != "" {
			return
		}
		if _, err := parse(spec); err != nil && !errors.Is(err, result.ErrSpec) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add([]byte("tolerations: [{operator: Exists}]\nresources: {limits: {cpu: 1}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := manifest.PodSettings{Resources: manifest.DefaultResources()}
		if p.Unmarshal(text) == nil && len(p.Resources.Requests)+len(p.Resources.Limits)+len(p.Resources.Claims) == 0 {
			t.Error("a pod without resources")
		}
	})
}

// TestRBAC checks that the printed rights are minimal: they are in one namespace, unless the user asks for the
// cluster-wide form, which warns of its power.
func TestRBAC(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		wide bool
	}{
		"rbac-cluster.yaml": {"kube:", true},
		"rbac-given.yaml":   {"kube:?namespace=bench", false},
		"rbac-named.yaml": {"kube:?namespace=bench&client-node=a&server-node=b&default-network=kube-system/sriov",
			false},
	} {
		spec, err := result.ParseSpec(test.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := RBAC(spec, test.wide, allNeeds())
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "testdata/"+name, got)
	}
	spec, _ := result.ParseSpec("kube:")
	got, err := RBAC(spec, false, allNeeds())
	if first, _, _ := strings.Cut(got, "---\n"); err != nil {
		t.Error(err)
	} else {
		golden.Check(t, "testdata/rbac-unnamed.txt", first)
	}
	inDefault := parseOptions(t, "kube:?namespace="+cluster.DefaultNamespace)
	if len(cluster.Roles(inDefault.need(allNeeds()))) != strings.Count(got, "---\n") {
		t.Error("without a namespace there are other rights than in a namespace")
	}
	spec, _ = result.ParseSpec("kube:?namespace=bench")
	_, err = RBAC(spec, true, allNeeds())
	if !errors.Is(err, result.ErrSpec) || !strings.Contains(err.Error(), "namespace=bench") {
		t.Errorf("cluster-wide in one namespace: %v", err)
	}
}

// TestRBACWithoutClaims checks that storage needs no rights on volumes if it is measured without claims.
func TestRBACWithoutClaims(t *testing.T) {
	for text, want := range map[string]bool{"kube:?namespace=bench": true, "kube:?namespace=bench&volume=root": false} {
		spec, err := result.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := RBAC(spec, false, allNeeds()); err != nil || strings.Contains(got, "persistentvolume") != want ||
			strings.Contains(got, "storageclasses") != want {
			t.Errorf("%s: %v:\n%s", text, err, got)
		}
	}
}

// TestRBACInOneNamespace checks that with namespace= no right allows a change outside the namespace.
func TestRBACInOneNamespace(t *testing.T) {
	for _, d := range cluster.Roles(parseOptions(t, "kube:?namespace=bench").need(allNeeds())) {
		r, wide := d.(rbacv1.ClusterRole)
		for _, rule := range r.Rules {
			for _, verb := range rule.Verbs {
				if wide && !slices.Contains([]string{"get", "list", "watch"}, verb) {
					t.Errorf("%s may %s %v everywhere", r.Name, verb, rule.Resources)
				}
			}
		}
	}
}
