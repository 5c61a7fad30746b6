package product

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Parts of the files in testdata: objects of the API server and reports of pods, then the facts that follow.
const (
	objectsHeader = "-- objects.yaml --\n"
	factsHeader   = "-- facts --\n"
)

// TestFacts checks the facts that follow from the recorded objects of each product: testdata/PRODUCT/CASE.txt.
func TestFacts(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded objects", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			objects, _, _ := strings.Cut(strings.TrimPrefix(string(text), objectsHeader), factsHeader)
			var facts strings.Builder
			for _, f := range allFacts(recorded(t, objects)) {
				if f.Value == "" {
					t.Errorf("the fact %s is empty", f.Name)
				}
				if f.Value != result.Unknown {
					fmt.Fprintf(&facts, "%s: %s\n", f.Name, f)
				}
			}
			golden.Check(t, path, objectsHeader+objects+factsHeader+facts.String())
		})
	}
}

// allFacts returns all facts that follow from e.
func allFacts(e Evidence) []result.Fact {
	return slices.Concat([]result.Fact{e.Distribution()}, e.MachineFacts(), e.NetworkFacts(), e.MeshFacts(), e.TunnelMTU())
}

// recorded returns the evidence in a stream of YAML documents: objects of Kubernetes and of products, and documents of
// the kinds Version, Options and Report (of a pod or a node).
func recorded(t *testing.T, text string) Evidence {
	t.Helper()
	e := Evidence{Config: map[string]map[string]string{}, Custom: map[string][]json.RawMessage{}}
	for document := range strings.SplitSeq(text, "---\n") {
		var head struct{ Kind, Of, GitVersion string }
		decode := func(into any) {
			if err := yaml.Unmarshal([]byte(document), into); err != nil {
				t.Fatalf("%v in\n%s", err, document)
			}
		}
		decode(&head)
		switch head.Kind {
		case "": // no objects
		case "Version":
			e.Version = head.GitVersion
		case "Options":
			decode(&e)
		case "DaemonSet":
			var d appsv1.DaemonSet
			decode(&d)
			e.DaemonSets = append(e.DaemonSets, d)
		case "ConfigMap":
			var m corev1.ConfigMap
			decode(&m)
			e.Config[m.Namespace+"/"+m.Name] = m.Data
		case "Node":
			var n corev1.Node
			decode(&n)
			e.Nodes = append(e.Nodes, n)
		case "Pod":
			e.Admitted = &corev1.Pod{}
			decode(e.Admitted)
		case "Report":
			r := &preflight.Report{}
			decode(r)
			if head.Of == "node" {
				e.Node = r
			} else {
				e.Pod = r
			}
		default:
			text, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			plural := strings.ToLower(head.Kind) + "s"
			e.Custom[plural] = append(e.Custom[plural], text)
		}
	}
	return e
}

// TestNamesAreUnique checks that each product has a name of its own.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		if p.Name == "" || seen[p.Name] {
			t.Errorf("a product without a name of its own: %q", p.Name)
		}
		seen[p.Name] = true
	}
}

// TestChain checks that Chain returns the plugins of a configuration if all of them have valid names.
func TestChain(t *testing.T) {
	for config, want := range map[string]string{
		`{"type":"sriov","vlan":7}`:                         "sriov",
		`{"plugins":[{"type":"macvlan"},{"type":"veth"}]}`:  "macvlan veth",
		`{"plugins":[{"type":"macvlan"},{"type":"a b"}]}`:   "",
		`{"plugins":[{"type":"macvlan"},{"chained":true}]}`: "",
		"": "", "{}": "", "{": "",
	} {
		if got := strings.Join(Chain(config), " "); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// TestMachinesHaveSources checks that every size has figures with sources and occurs once.
func TestMachinesHaveSources(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		for _, m := range p.Machines {
			if seen[m.Name] || m.Link <= 0 || m.IOPS <= 0 || m.Disks <= 0 ||
				!strings.ContainsAny(m.Series.Link, "0123456789") || !strings.ContainsAny(m.Series.Disks, "0123456789") {
				t.Errorf("%+v", m)
			}
			seen[m.Name] = true
		}
	}
}

// FuzzFacts checks that no settings make a fact empty.
func FuzzFacts(f *testing.F) {
	f.Add(`{"Backend":{"Type":"vxlan"}}`, "mode: ipvs")
	f.Fuzz(func(t *testing.T, text, other string) {
		var router appsv1.DaemonSet
		router.Spec.Template.Spec.Containers = []corev1.Container{{Image: "kube-router", Args: []string{text, other}}}
		node := corev1.Node{}
		node.Annotations = map[string]string{flannelType: text}
		one := func(name, key string) Evidence {
			return Evidence{Config: map[string]map[string]string{name: {key: text}}}
		}
		for _, e := range []Evidence{one(antreaMap, "antrea-agent.conf"), one(kubeProxyMap, "config.conf"),
			one("kube-flannel/kube-flannel-cfg", "net-conf.json"), {DaemonSets: []appsv1.DaemonSet{router}},
			{Config: map[string]map[string]string{ciliumMap: {"routing-mode": text, "mtu": other}}},
			{Nodes: []corev1.Node{node}}, {Custom: map[string][]json.RawMessage{"ippools": {[]byte(text)}}}} {
			for _, f := range allFacts(e) {
				if f.Value == "" {
					t.Errorf("the fact %s is empty", f.Name)
				}
			}
		}
		Chain(text)
	})
}
