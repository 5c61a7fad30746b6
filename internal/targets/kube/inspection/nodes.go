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

// A worker is a node that pods of ours may be on.
type worker struct {
	Name, Zone, Type string
	Arch             string // amd64, arm64
}

// A NodeConstraints is what users want of the nodes of an experiment.
type NodeConstraints struct {
	Selector       labels.Selector
	Tolerations    []corev1.Toleration
	Client, Server string // names; "": chosen
	Across         bool   // the two are in different zones
	Rotate         bool   // each block has another pair
}

// An unfit node is one that may not be chosen.
type unfit struct {
	name, why        string
	control, tainted bool // of the control plane, although there are others; with a taint
}

// workers are the nodes that may be chosen, by name: ready, not cordoned, with Linux, the labels that were asked for,
// and no taint that keeps our pods away. Nodes of the control plane only if there are no others.
func workers(nodes []corev1.Node, wish NodeConstraints) (fit []worker, others []unfit) {
	var control []worker
	for _, n := range nodes {
		if u := unfitness(n, wish); u.why != "" {
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
		others = append(others, unfit{name: w.Name, why: "is of the control plane", control: true})
	}
	slices.SortFunc(fit, func(a, b worker) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(others, func(a, b unfit) int { return strings.Compare(a.name, b.name) })
	return fit, others
}

func controlPlane(n corev1.Node) bool {
	_, now := n.Labels["node-role.kubernetes.io/control-plane"]
	_, once := n.Labels["node-role.kubernetes.io/master"]
	return now || once
}

// Ready says whether a node is.
func Ready(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// unfitness says why pods of ours cannot be on a node; nothing if they can.
func unfitness(n corev1.Node, wish NodeConstraints) unfit {
	u := unfit{name: n.Name}
	switch {
	case !Ready(n):
		u.why = "is not ready"
	case n.Spec.Unschedulable:
		u.why = "is cordoned"
	case n.Labels[corev1.LabelOSStable] != "" && n.Labels[corev1.LabelOSStable] != "linux":
		u.why = "has " + n.Labels[corev1.LabelOSStable]
	case !wish.Selector.Matches(labels.Set(n.Labels)):
		u.why = "has not the labels of node-selector"
	default:
		for _, t := range n.Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(t, wish.Tolerations) {
				u.why, u.tainted = fmt.Sprintf("has the taint %s:%s", t.Key, t.Effect), true
				break
			}
		}
	}
	return u
}

// tolerated is the scheduler's rule.
func tolerated(t corev1.Taint, list []corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(o corev1.Toleration) bool { return o.ToleratesTaint(klog.Logger{}, &t, false) })
}

// A NodeChoice is the nodes of an experiment.
type NodeChoice struct {
	Pairs [][2]worker // client's and server's, for the blocks in turn; both may be nil
	alone []worker    // the client's where both ends are on one node
	why   error       // why there are no pairs
	Rule  string
}

// UnlistedNodes is the choice of nodes that the user names and that nobody may list.
func UnlistedNodes(wish NodeConstraints) NodeChoice {
	c := NodeChoice{Rule: "named by the options, unseen: nodes may not be listed", alone: []worker{{Name: wish.Client}}}
	if wish.Server == "" {
		c.why = result.NotSupported("nodes may not be listed, and server-node= names none")
	} else {
		c.Pairs = [][2]worker{{{Name: wish.Client}, {Name: wish.Server}}}
	}
	return c
}

// MayUse says whether runs may be on a node: it is among those chosen, or there were too few to choose from.
func (c NodeChoice) MayUse(name string) bool {
	return c.why != nil || slices.Contains(c.Names(), name)
}

// Names are the nodes that runs can be on.
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

// ChooseNodes picks the nodes of an experiment by a rule that its facts tell. One pair for all blocks, unless nodes are
// rotated: then all ordered pairs in turn, so that in as many blocks as there are nodes each is the client's once and
// the server's once.
func ChooseNodes(nodes []corev1.Node, wish NodeConstraints) (NodeChoice, error) {
	fit, others := workers(nodes, wish)
	if wish.Client != "" {
		return named(fit, others, wish)
	}
	if len(fit) == 0 {
		return NodeChoice{}, fmt.Errorf("no node can have our pods%s; make one of them fit, or tolerate its taint in "+
			"config=", because(others))
	}
	group := largest(fit, func(w worker) string {
		if wish.Across {
			return w.Type
		}
		return w.Zone + "\x00" + w.Type
	})
	c := NodeChoice{Rule: choiceRules[wish.Rotate][wish.Across], Pairs: pairs(group, wish.Across), alone: group}
	switch {
	case len(c.Pairs) == 0:
		c.why = noPair(fit, others, wish)
	case !wish.Rotate:
		c.Pairs = c.Pairs[:1]
	}
	if !wish.Rotate {
		c.alone = group[:1]
		if len(c.Pairs) > 0 {
			c.alone = []worker{c.Pairs[0][0]}
		}
	}
	return c, nil
}

// choiceRules say how nodes are chosen: rotated or not, across zones or not.
var choiceRules = map[bool]map[bool]string{
	false: {false: "the first two by name of the most workers in one zone and of one type",
		true: "the first by name of the workers of one type, and the first in another zone"},
	true: {false: "all of the most workers in one zone and of one type in turn",
		true: "all pairs of workers of one type in different zones in turn"},
}

func noPair(fit []worker, others []unfit, wish NodeConstraints) error {
	switch {
	case len(fit) == 1:
		return result.NotSupported(fmt.Sprintf("there is no second node for the server: only %s can have our pods%s",
			fit[0].Name, because(others)))
	case wish.Across:
		return result.NotSupported("no two workers of one type are in different zones; client-node= and server-node= name " +
			"any two")
	}
	return result.NotSupported("no two workers are in one zone and of one type; zones=across compares zones, " +
		"client-node= and server-node= name any two")
}

func because(others []unfit) string {
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

// named are the nodes that the options name.
func named(fit []worker, others []unfit, wish NodeConstraints) (NodeChoice, error) {
	c := NodeChoice{Rule: "named by the options"}
	a, err := find(wish.Client, fit, others)
	if err != nil {
		return c, fmt.Errorf("client-node: %w", err)
	}
	c.alone = []worker{a}
	if wish.Server != "" {
		b, err := find(wish.Server, fit, others)
		if err != nil {
			return c, fmt.Errorf("server-node: %w", err)
		}
		c.Pairs = [][2]worker{{a, b}}
		return c, nil
	}
	c.Rule = "the client's named by the options, the server's the first other worker by name"
	i := slices.IndexFunc(fit, func(w worker) bool {
		return w.Name != a.Name && w.Type == a.Type && (w.Zone == a.Zone) != wish.Across
	})
	if i < 0 {
		c.why = noPair(c.alone, others, wish)
		return c, nil
	}
	c.Pairs = [][2]worker{{a, fit[i]}}
	return c, nil
}

// find is the worker of a name, or what else can be done.
func find(name string, fit []worker, others []unfit) (worker, error) {
	if i := slices.IndexFunc(fit, func(w worker) bool { return w.Name == name }); i >= 0 {
		return fit[i], nil
	}
	i := slices.IndexFunc(others, func(u unfit) bool { return u.name == name && !u.control })
	switch {
	case i < 0:
		return worker{}, fmt.Errorf("the cluster has no worker %s", name)
	case others[i].tainted:
		return worker{}, fmt.Errorf("node %s %s; name another node, or tolerate the taint in config=", name, others[i].why)
	}
	return worker{}, fmt.Errorf("node %s %s; name another node", name, others[i].why)
}

// largest is the largest group of workers with the same key; of several the first by key.
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

// pairs are the ordered pairs of a group: first every worker with the next one, then with the one after that.
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

// At are the nodes of a placement.
func (c NodeChoice) At(other bool, rotation int) ([2]worker, error) {
	if !other {
		w := c.alone[rotation%len(c.alone)]
		return [2]worker{w, w}, nil
	}
	if len(c.Pairs) == 0 {
		return [2]worker{}, c.why
	}
	return c.Pairs[rotation%len(c.Pairs)], nil
}

// Spread names the nodes that so many pods may be on, by name: without the one to avoid where there are enough others.
func Spread(nodes []corev1.Node, wish NodeConstraints, avoid string, pods int) []string {
	fit, _ := workers(nodes, wish)
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
