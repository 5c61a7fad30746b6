package kube

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// openedNodes opens a site and returns the nodes of its pods, by their own status.
func openedNodes(t *testing.T, k *kubeTarget, p targets.Placement) [2]string {
	t.Helper()
	c, err := k.reachForSites(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := c.openPart(t.Context(), p)
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	nodes := [2]string{opened.group.Pods[opened.plan.Name(manifest.Client)].Spec.NodeName,
		opened.group.Pods[opened.plan.Name(manifest.Server)].Spec.NodeName}
	if err := c.remove(t.Context(), []*part{opened}); err != nil {
		t.Error(err)
	}
	return nodes
}

// labelZones labels the nodes with zones, in the order of their names, until the test ends, and returns the zones by
// node.
func labelZones(t *testing.T, c *cluster.Cluster, zones ...string) map[string]string {
	t.Helper()
	found, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != len(zones) {
		t.Skipf("this is about a cluster of %d nodes; there are %d", len(zones), len(found.Items))
	}
	label := func(ctx context.Context, node string, zone any) {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"labels": map[string]any{corev1.LabelTopologyZone: zone}},
		})
		if err == nil {
			_, err = c.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	placed := map[string]string{}
	for i, n := range found.Items {
		var before any // nil removes the label
		if zone, had := n.Labels[corev1.LabelTopologyZone]; had {
			before = zone
		}
		t.Cleanup(func() { label(context.Background(), n.Name, before) })
		label(t.Context(), n.Name, zones[i])
		placed[n.Name] = zones[i]
	}
	return placed
}

// TestRotation checks that rotation uses each ordered pair once in as many blocks as there are pairs, so that each node
// is the client's as often as the server's.
func TestRotation(t *testing.T) {
	c := admin(t)
	for _, test := range []struct {
		options string
		zones   []string
		fits    func(a, b string) bool // zones
	}{
		{"&rotate-nodes=yes", []string{"a", "a", "a"}, func(a, b string) bool { return a == b }},
		{"&rotate-nodes=yes&zones=across", []string{"a", "b", "c"}, func(a, b string) bool { return a != b }},
		{"&rotate-nodes=yes&zones=across", []string{"a", "b", "a"}, func(a, b string) bool { return a != b }},
	} {
		zones := labelZones(t, c, test.zones...)
		k := newTestTarget(t, realCluster(t)+test.options)
		if _, err := k.reach(t.Context()); err != nil {
			t.Fatal(err)
		}
		blocks := len(k.reached.nodes.Pairs)
		used := map[[2]string]int{}
		for rotation := range blocks {
			pair := openedNodes(t, k, targets.Placement{Path: result.PodPodOther, Rotation: rotation})
			used[pair]++
			if pair[0] == pair[1] || !test.fits(zones[pair[0]], zones[pair[1]]) {
				t.Errorf("%s: block %d is on %v, in the zones %s and %s", test.options, rotation+1, pair, zones[pair[0]],
					zones[pair[1]])
			}
		}
		wanted := 0
		for a := range zones {
			for b := range zones {
				if a != b && test.fits(zones[a], zones[b]) {
					wanted++
					if n := used[[2]string{a, b}]; n != 1 {
						t.Errorf("%s: the pair %s and %s was used %d times in %d blocks", test.options, a, b, n, blocks)
					}
				}
			}
		}
		t.Logf("%s: %d blocks on %v", test.options, blocks, used)
		if blocks != wanted {
			t.Errorf("%s: %d blocks for %d pairs", test.options, blocks, wanted)
		}
		if again := openedNodes(t, k, targets.Placement{Path: result.PodPodOther, Rotation: blocks}); used[again] != 1 ||
			again != [2]string{k.reached.nodes.Pairs[0][0].Name, k.reached.nodes.Pairs[0][1].Name} {
			t.Errorf("%s: after the last pair comes %v", test.options, again)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNamedNodes checks that options that name nodes select these nodes.
func TestNamedNodes(t *testing.T) {
	c := admin(t)
	zones := labelZones(t, c, "a", "b", "a")
	for _, test := range []struct {
		options string
		path    result.Path
		fits    func(pair [2]string) bool
	}{
		{"&zones=across", result.PodPodOther, func(p [2]string) bool { return zones[p[0]] != zones[p[1]] }},
		{"", result.PodPodOther, func(p [2]string) bool { return p[0] != p[1] && zones[p[0]] == zones[p[1]] }},
		{"&client-node=node-2&server-node=node-3", result.PodPodOther,
			func(p [2]string) bool { return p == [2]string{"node-2", "node-3"} }},
		{"&client-node=node-2&server-node=node-3", result.PodSvcSame,
			func(p [2]string) bool { return p == [2]string{"node-2", "node-2"} }},
		{"&client-node=node-3&zones=across", result.PodPodOther, func(p [2]string) bool {
			return p[0] == "node-3" &&
				zones[p[1]] != zones["node-3"]
		}},
		{"&node-selector=kubernetes.io/hostname%3Dnode-2", result.PodPodSame,
			func(p [2]string) bool { return p == [2]string{"node-2", "node-2"} }},
	} {
		k := newTestTarget(t, realCluster(t)+test.options)
		if pair := openedNodes(t, k, targets.Placement{Path: test.path}); !test.fits(pair) {
			t.Errorf("%q, %s: on %v", test.options, test.path, pair)
		} else {
			t.Logf("%q, %s: on %v", test.options, test.path, pair)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
