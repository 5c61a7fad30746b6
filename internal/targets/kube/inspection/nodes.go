package inspection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A worker is a node that can run Knotmeter's pods.
type worker struct {
	Name, Zone, Type string
	Arch             string // amd64, arm64
}

// NodeConstraints are the user's options about the nodes of an experiment.
type NodeConstraints struct {
	Selector       labels.Selector
	Tolerations    []corev1.Toleration
	Client, Server string // names of nodes; empty: chosen by Knotmeter
	Across         bool   // choose nodes in different zones
	Rotate         bool   // use another pair in each block
}

// An excludedNode is a node that cannot be chosen.
type excludedNode struct {
	name, why string
	control   bool // excluded only because it belongs to the control plane and there are other nodes
	tainted   bool // excluded because of a taint
}

// workers returns the nodes that can be chosen and the others, both sorted by name. A node can be chosen if it is
// ready, is not cordoned, runs Linux, matches the selector, and has no taint that the pods do not tolerate.
// Control-plane nodes are chosen only if there are no others.
func workers(nodes []corev1.Node, constraints NodeConstraints) (fit []worker, others []excludedNode) {
	var control []worker
	for _, n := range nodes {
		if u := exclusion(n, constraints); u.why != "" {
			others = append(others, u)
			continue
		}
		w := worker{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Type: n.Labels[corev1.LabelInstanceTypeStable],
			Arch: n.Status.NodeInfo.Architecture}
		if controlPlane(n) {
			control = append(control, w)
		} else {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		fit, control = control, nil
	}
	for _, w := range control {
		others = append(others, excludedNode{name: w.Name, why: "is of the control plane", control: true})
	}
	slices.SortFunc(fit, func(a, b worker) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(others, func(a, b excludedNode) int { return strings.Compare(a.name, b.name) })
	return fit, others
}

// controlPlane reports whether a node has a label of the control plane, current or deprecated.
func controlPlane(n corev1.Node) bool {
	_, current := n.Labels["node-role.kubernetes.io/control-plane"]
	_, deprecated := n.Labels["node-role.kubernetes.io/master"]
	return current || deprecated
}

// Ready reports whether a node has the condition Ready.
func Ready(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// exclusion returns the reason why a node cannot run the pods. Its why is empty if the node can.
func exclusion(n corev1.Node, constraints NodeConstraints) excludedNode {
	u := excludedNode{name: n.Name}
	switch {
	case !Ready(n):
		u.why = "is not ready"
	case n.Spec.Unschedulable:
		u.why = "is cordoned"
	case n.Labels[corev1.LabelOSStable] != "" && n.Labels[corev1.LabelOSStable] != "linux":
		u.why = "has " + n.Labels[corev1.LabelOSStable]
	case !constraints.Selector.Matches(labels.Set(n.Labels)):
		u.why = "has not the labels of node-selector"
	default:
		for _, t := range n.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(t, constraints.Tolerations) {
				u.why, u.tainted = fmt.Sprintf("has the taint %s:%s", t.Key, t.Effect), true
				break
			}
		}
	}
	return u
}

// tolerated reports whether the list tolerates a taint, by the scheduler's rule.
func tolerated(t corev1.Taint, list []corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(o corev1.Toleration) bool { return o.ToleratesTaint(klog.Logger{}, &t, false) })
}

// A NodeChoice holds the nodes chosen for an experiment.
type NodeChoice struct {
	Pairs [][2]worker // nodes of client and server, used by the blocks in turn; may be nil
	alone []worker    // nodes for both ends on one node, used by the blocks in turn
	why   error       // why there are no pairs
	Rule  string      // how the nodes were chosen, as a fact
}

// UnlistedNodes returns the choice of the nodes that the user names, for a user who may not list nodes.
func UnlistedNodes(constraints NodeConstraints) NodeChoice {
	c := NodeChoice{Rule: "named by the options, unseen: nodes may not be listed",
		alone: []worker{{Name: constraints.Client}}}
	if constraints.Server == "" {
		c.why = result.NotSupported("nodes may not be listed, and server-node= names none")
	} else {
		c.Pairs = [][2]worker{{{Name: constraints.Client}, {Name: constraints.Server}}}
	}
	return c
}

// MayUse reports whether runs may be on a node: it was chosen, or there is no pair.
func (c NodeChoice) MayUse(name string) bool {
	return c.why != nil || slices.Contains(c.Names(), name)
}

// Names returns the names of the chosen nodes; a name may occur several times.
func (c NodeChoice) Names() []string {
	var names []string
	for _, w := range c.alone {
		names = append(names, w.Name)
	}
	for _, p := range c.Pairs {
		names = append(names, p[0].Name, p[1].Name)
	}
	return names
}

// ChooseNodes chooses the nodes of an experiment: one pair for all blocks, or with Rotate all ordered pairs in turn.
// Then, without Across, each node is the client's once and the server's once in as many blocks as there are nodes.
// ChooseNodes returns an error if no node can be used, or if a named one cannot.
func ChooseNodes(nodes []corev1.Node, constraints NodeConstraints) (NodeChoice, error) {
	fit, others := workers(nodes, constraints)
	if constraints.Client != "" {
		return chooseNamed(fit, others, constraints)
	}
	if len(fit) == 0 {
		return NodeChoice{}, fmt.Errorf("no node can have our pods%s; make one of them fit, or tolerate its taint in "+
			"config=", exclusionText(others))
	}
	group := largest(fit, func(w worker) string {
		if constraints.Across {
			return w.Type
		}
		return w.Zone + "\x00" + w.Type
	})
	c := NodeChoice{Rule: choiceRules[constraints.Rotate][constraints.Across],
		Pairs: pairs(group, constraints.Across), alone: group}
	switch {
	case len(c.Pairs) == 0:
		c.why = noPair(fit, others, constraints)
	case !constraints.Rotate:
		c.Pairs = c.Pairs[:1]
	}
	if !constraints.Rotate {
		c.alone = group[:1]
		if len(c.Pairs) > 0 {
			c.alone = []worker{c.Pairs[0][0]}
		}
	}
	return c, nil
}

// choiceRules describes how nodes are chosen, by Rotate and Across.
var choiceRules = map[bool]map[bool]string{
	false: {false: "the first two by name of the most workers in one zone and of one type",
		true: "the first by name of the workers of one type, and the first in another zone"},
	true: {false: "all of the most workers in one zone and of one type in turn",
		true: "all pairs of workers of one type in different zones in turn"},
}

// noPair returns the reason why there is no pair of nodes.
func noPair(fit []worker, others []excludedNode, constraints NodeConstraints) error {
	switch {
	case len(fit) == 1:
		return result.NotSupported(fmt.Sprintf("there is no second node for the server: only %s can have our pods%s",
			fit[0].Name, exclusionText(others)))
	case constraints.Across:
		return result.NotSupported("no two workers of one type are in different zones; client-node= and server-node= name " +
			"any two")
	}
	return result.NotSupported("no two workers are in one zone and of one type; zones=across compares zones, " +
		"client-node= and server-node= name any two")
}

// exclusionText lists the first excluded nodes with the reasons, in parentheses; empty if there is none.
func exclusionText(others []excludedNode) string {
	const most = 4
	var words []string
	for _, u := range others[:min(most, len(others))] {
		words = append(words, u.name+" "+u.why)
	}
	switch n := len(others) - most; {
	case len(others) == 0:
		return ""
	case n > 0:
		return fmt.Sprintf(" (%s and %d more)", strings.Join(words, "; "), n)
	}
	return " (" + strings.Join(words, "; ") + ")"
}

// chooseNamed chooses the nodes that the options name. If they name only the client's node, it chooses the server's.
func chooseNamed(fit []worker, others []excludedNode, constraints NodeConstraints) (NodeChoice, error) {
	c := NodeChoice{Rule: "named by the options"}
	a, err := findWorker(constraints.Client, fit, others)
	if err != nil {
		return c, fmt.Errorf("client-node: %w", err)
	}
	c.alone = []worker{a}
	if constraints.Server != "" {
		b, err := findWorker(constraints.Server, fit, others)
		if err != nil {
			return c, fmt.Errorf("server-node: %w", err)
		}
		c.Pairs = [][2]worker{{a, b}}
		return c, nil
	}
	c.Rule = "the client's named by the options, the server's the first other worker by name"
	i := slices.IndexFunc(fit, func(w worker) bool {
		return w.Name != a.Name && w.Type == a.Type && (w.Zone == a.Zone) != constraints.Across
	})
	if i < 0 {
		c.why = noPair(c.alone, others, constraints)
		return c, nil
	}
	c.Pairs = [][2]worker{{a, fit[i]}}
	return c, nil
}

// findWorker returns the worker with a name, or an error with a remedy.
func findWorker(name string, fit []worker, others []excludedNode) (worker, error) {
	if i := slices.IndexFunc(fit, func(w worker) bool { return w.Name == name }); i >= 0 {
		return fit[i], nil
	}
	i := slices.IndexFunc(others, func(u excludedNode) bool { return u.name == name && !u.control })
	switch {
	case i < 0:
		return worker{}, fmt.Errorf("the cluster has no worker %s", name)
	case others[i].tainted:
		return worker{}, fmt.Errorf("node %s %s; name another node, or tolerate the taint in config=", name, others[i].why)
	}
	return worker{}, fmt.Errorf("node %s %s; name another node", name, others[i].why)
}

// largest returns the largest group of workers with the same key; of several, the first by key.
func largest(fit []worker, key func(worker) string) []worker {
	groups := map[string][]worker{}
	best := ""
	for _, w := range fit {
		k := key(w)
		groups[k] = append(groups[k], w)
	}
	for k, g := range groups {
		if n := len(groups[best]); len(g) > n || len(g) == n && k < best {
			best = k
		}
	}
	return groups[best]
}

// pairs returns the ordered pairs of a group, in different zones if across is set: first every worker with the next
// one, then with the one after that, and so on.
func pairs(group []worker, across bool) [][2]worker {
	var list [][2]worker
	for distance := 1; distance < len(group); distance++ {
		for i, a := range group {
			b := group[(i+distance)%len(group)]
			if !across || a.Zone != b.Zone {
				list = append(list, [2]worker{a, b})
			}
		}
	}
	return list
}

// At returns the nodes of client and server in a rotation: two nodes, or the same one twice. It returns an error if
// there are no pairs of nodes.
func (c NodeChoice) At(twoNodes bool, rotation int) ([2]worker, error) {
	if !twoNodes {
		w := c.alone[rotation%len(c.alone)]
		return [2]worker{w, w}, nil
	}
	if len(c.Pairs) == 0 {
		return [2]worker{}, c.why
	}
	return c.Pairs[rotation%len(c.Pairs)], nil
}

// Spread returns the sorted names of the nodes over which pods may be spread. It leaves out the node to avoid if there
// are enough others for the number of pods.
func Spread(nodes []corev1.Node, constraints NodeConstraints, avoid string, pods int) []string {
	fit, _ := workers(nodes, constraints)
	var all, others []string
	for _, w := range fit {
		all = append(all, w.Name)
		if w.Name != avoid {
			others = append(others, w.Name)
		}
	}
	if len(others) < pods {
		return all
	}
	return others
}
