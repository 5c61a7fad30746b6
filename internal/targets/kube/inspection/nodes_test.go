package inspection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/result"
)

// node returns a node from words: its name, zone, type and properties. "-" is no zone or type. It is ready by default.
func node(words string) corev1.Node {
	f := strings.Fields(words + " - -")
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f[0], Labels: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if f[1] != "-" {
		n.Labels[corev1.LabelTopologyZone] = f[1]
	}
	if f[2] != "-" {
		n.Labels[corev1.LabelInstanceTypeStable] = f[2]
	}
	for _, how := range f[3:] {
		switch how {
		case "unready":
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		case "cordoned":
			n.Spec.Unschedulable = true
		case "windows":
			n.Labels[corev1.LabelOSStable] = "windows"
		case "control":
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
		case "tainted":
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
		case "discouraged":
			n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
		}
	}
	return n
}

func TestChooseNodes(t *testing.T) {
	none := NodeConstraints{}
	dedicated := []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoSchedule}}
	inZone := labels.SelectorFromSet(labels.Set{corev1.LabelTopologyZone: "z1"})
	for _, test := range []struct {
		name, nodes string
		constraints NodeConstraints
		pairs       string // of blocks 0, 1, 2
		same        string
		says        string // why there are no pairs, or no nodes
	}{
		{"two", "b;a", none, "a>b a>b a>b", "a a a", ""},
		{"most in one zone", "a z1 small;b z2 small;c z2 small;d z3 small", none, "b>c b>c b>c", "b b b", ""},
		{"not another type", "a z1 small;b z1 large;c z1 small", none, "a>c a>c a>c", "a a a", ""},
		{"across", "a z1 small;b z1 small;c z2 small", NodeConstraints{Across: true}, "b>c b>c b>c", "b b b", ""},
		{"rotated", "a;b;c", NodeConstraints{Rotate: true}, "a>b b>c c>a", "a b c", ""},
		{"unfit", "a - - unready;b - - cordoned;c - - windows;d - - tainted;e - - control;f - - discouraged;g", none,
			"f>g f>g f>g", "f f f", ""},
		{"tolerated", "a - - tainted;b - - tainted", NodeConstraints{Tolerations: dedicated}, "a>b a>b a>b", "a a a", ""},
		{"control plane only", "a - - control;b - - control", none, "a>b a>b a>b", "a a a", ""},
		{"one", "a;b - - cordoned", none, "", "a a a", "no second node for the server: only a can have our pods (b " +
			"is cordoned)"},
		{"no pair alike", "a z1 x;b z2 x", none, "", "a a a", "zones=across"},
		{"no zones", "a z1 x;b z1 x", NodeConstraints{Across: true}, "", "a a a", "different zones"},
		{"none", "a - - unready;b - - tainted", none, "", "", "a is not ready; b has the taint dedicated:NoSchedule"},
		{"named", "a;b;c", NodeConstraints{Client: "c", Server: "a"}, "c>a c>a c>a", "c c c", ""},
		{"named client", "a;b;c", NodeConstraints{Client: "b"}, "b>a b>a b>a", "b b b", ""},
		{"named unready", "a;b - - unready", NodeConstraints{Client: "b"}, "", "", "client-node: node b is not ready"},
		{"named unknown", "a;b", NodeConstraints{Client: "a", Server: "x"}, "", "",
			"server-node: the cluster has no worker x"},
		{"selected", "a;b z1;c z1", NodeConstraints{Selector: inZone}, "b>c b>c b>c", "b b b", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var nodes []corev1.Node
			for words := range strings.SplitSeq(test.nodes, ";") {
				nodes = append(nodes, node(words))
			}
			if test.constraints.Selector == nil {
				test.constraints.Selector = labels.Everything()
			}
			c, err := ChooseNodes(nodes, test.constraints)
			if err != nil {
				if test.same != "" || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v does not say %q", err, test.says)
				}
				return
			}
			var pairs, same []string
			for rotation := range 3 {
				if n, err := c.At(true, rotation); err == nil {
					pairs = append(pairs, n[0].Name+">"+n[1].Name)
				} else if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v does not say %q", err, test.says)
				}
				n, err := c.At(false, rotation)
				if err != nil || n[0] != n[1] {
					t.Errorf("on one node: %v, %v", n, err)
				}
				same = append(same, n[0].Name)
			}
			if got := strings.Join(pairs, " "); got != test.pairs {
				t.Errorf("pairs %s, wanted %s", got, test.pairs)
			}
			if got := strings.Join(same, " "); got != test.same {
				t.Errorf("on one node %s, wanted %s", got, test.same)
			}
			if c.Rule == "" {
				t.Error("the choice has no rule")
			}
		})
	}
}

// TestRotationIsBalanced checks that each node is the client's once and the server's once in as many blocks as there
// are nodes, and that a full rotation contains each pair once.
func TestRotationIsBalanced(t *testing.T) {
	for n := 2; n <= 7; n++ {
		var nodes []corev1.Node
		for i := range n {
			nodes = append(nodes, node(fmt.Sprintf("node-%d", i)))
		}
		c, err := ChooseNodes(nodes, NodeConstraints{Selector: labels.Everything(), Rotate: true})
		if err != nil {
			t.Fatal(err)
		}
		all := map[[2]string]bool{}
		for turn := range n - 1 {
			clients, servers := map[string]bool{}, map[string]bool{}
			for i := range n {
				p, err := c.At(true, turn*n+i)
				if err != nil || p[0] == p[1] {
					t.Fatalf("%v, %v", p, err)
				}
				clients[p[0].Name], servers[p[1].Name] = true, true
				all[[2]string{p[0].Name, p[1].Name}] = true
			}
			if len(clients) != n || len(servers) != n {
				t.Errorf("%d nodes, turn %d: %d clients, %d servers", n, turn, len(clients), len(servers))
			}
		}
		if len(all) != n*(n-1) {
			t.Errorf("%d nodes: %d pairs", n, len(all))
		}
	}
}

func TestTolerated(t *testing.T) {
	taint := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for _, test := range []struct {
		o    corev1.Toleration
		want bool
	}{
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		{corev1.Toleration{Key: "k", Value: "v"}, true},
		{corev1.Toleration{Key: "k", Value: "w"}, false},
		{corev1.Toleration{Key: "x", Operator: corev1.TolerationOpExists}, false},
		{corev1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}, false},
		{corev1.Toleration{}, false},
	} {
		if got := tolerated(taint, []corev1.Toleration{test.o}); got != test.want {
			t.Errorf("%+v: %v", test.o, got)
		}
	}
}

// TestSpread checks that Spread leaves out the node to avoid if there are enough others, and always leaves out unusable
// nodes.
func TestSpread(t *testing.T) {
	var nodes []corev1.Node
	for _, words := range []string{"c", "a", "d - - tainted", "b", "e - - control"} {
		nodes = append(nodes, node(words))
	}
	constraints := NodeConstraints{Selector: labels.Everything()}
	for pods, want := range map[int]string{1: "b c", 2: "b c", 3: "a b c", 5: "a b c"} {
		if got := strings.Join(Spread(nodes, constraints, "a", pods), " "); got != want {
			t.Errorf("%d: %q, want %q", pods, got, want)
		}
	}
	if got := Spread(nil, constraints, "a", 1); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
