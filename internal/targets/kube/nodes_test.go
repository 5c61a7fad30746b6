package kube

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
)

// targetWithNodes returns a target with n nodes, w0 and so on: the first on a machine of its own, the others sharing
// one.
func targetWithNodes(n int, o options) *kubeTarget {
	var listed []corev1.Node
	for i := range n {
		node := corev1.Node{}
		node.Name = fmt.Sprintf("w%d", i)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.NodeInfo.BootID = fmt.Sprintf("boot-%d", min(i, 1))
		listed = append(listed, node)
	}
	o.Selector = labels.Everything()
	choice, err := inspection.ChooseNodes(listed, o.NodeConstraints)
	if err != nil {
		panic(err)
	}
	c, err := cluster.Dial(&rest.Config{Host: "https://api:6443/"})
	if err != nil {
		panic(err)
	}
	k := &named{options: o}
	return &kubeTarget{named: k, reached: &reached{named: k, cluster: c, listed: listed, nodes: choice}}
}

func TestShares(t *testing.T) {
	k := targetWithNodes(3, options{})
	got, err := k.Shares(t.Context())
	want := []string{"the API server https://api:6443", "the machine with boot ID boot-0",
		"the machine with boot ID boot-1", "the machine with boot ID boot-1"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	k.reached.listed[2].Status.NodeInfo.BootID = ""
	if _, err := k.Shares(t.Context()); err == nil || !strings.Contains(err.Error(), "w2 does not tell its boot ID") {
		t.Errorf("%v", err)
	}
	k.reached.listed = nil
	if _, err := k.Shares(t.Context()); err == nil || !strings.Contains(err.Error(), "may not be listed") {
		t.Errorf("%v", err)
	}
}

// TestNodesInBalance checks that each node is the client's once and the server's once in as many blocks as there are
// nodes. Wherever an experiment stops, the counts differ by one at most.
func TestNodesInBalance(t *testing.T) {
	for n := 2; n <= 7; n++ {
		k := targetWithNodes(n, options{NodeConstraints: inspection.NodeConstraints{Rotate: true}})
		pairs, err := k.Nodes(t.Context())
		if err != nil || len(pairs) != n*(n-1) {
			t.Fatalf("%d nodes have %d pairs, %v", n, len(pairs), err)
		}
		var as [2]map[string]int
		as[0], as[1] = map[string]int{}, map[string]int{}
		for block := range 2*len(pairs) + 3 {
			nodes, err := k.reached.nodes.At(true, block)
			if err != nil {
				t.Fatal(err)
			}
			if listed := pairs[block%len(pairs)]; listed != [2]string{nodes[0].Name, nodes[1].Name} {
				t.Errorf("block %d is on %v, not on %v", block+1, nodes, listed)
			}
			for role, counts := range as {
				counts[nodes[role].Name]++
				least, most := block, 0
				for i := range n {
					c := counts[fmt.Sprintf("w%d", i)]
					least, most = min(least, c), max(most, c)
				}
				if most-least > 1 {
					t.Errorf("after %d blocks on %d nodes: %v", block+1, n, counts)
				}
			}
		}
	}
	if pairs, err := targetWithNodes(3, options{}).Nodes(t.Context()); pairs != nil || err != nil {
		t.Errorf("without rotation: %v, %v", pairs, err)
	}
}
