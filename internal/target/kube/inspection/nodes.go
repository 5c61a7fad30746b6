package inspection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A worker is a node that pods of ours may be on.
type worker struct {
	Name, Zone, Type string
	Arch             string // amd64, arm64
	BootID           string // equal on two nodes that are one machine
}

// A NodeWish is what users want of the nodes of an experiment.
type NodeWish struct {
	Selector       labels.Selector
	Tolerations    []corev1.Toleration
	Client, Server string // names; "": chosen
	Across         bool   // the two are in different zones
	Rotate         bool   // each block has another pair
}

// workers are the nodes that may be chosen, by name: ready, not cordoned, with Linux, the labels that were
// asked for, and no taint that keeps our pods away. Nodes of the control plane only if there are no
// others. unfit says of each other node why not.
func workers(nodes []corev1.Node, wish NodeWish) (fit []worker, unfit []string) {
	var control []worker
	for _, n := range nodes {
		if why := unfitness(n, wish); why != "" {
			unfit = append(unfit, n.Name+" "+why)
			continue
		}
		w := worker{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Type: n.Labels[corev1.LabelInstanceTypeStable],
			Arch: n.Status.NodeInfo.Architecture, BootID: n.Status.NodeInfo.BootID}
		if controlPlane(n) {
			control = append(control, w)
		} else {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		fit = control
	} else {
		for _, w := range control {
			unfit = append(unfit, w.Name+" is of the control plane")
		}
	}
	slices.SortFunc(fit, func(a, b worker) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(unfit)
	return fit, unfit
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

// unfitness says why pods of ours can not be on a node; empty if they can.
func unfitness(n corev1.Node, wish NodeWish) string {
	switch {
	case !Ready(n):
		return "is not ready"
	case n.Spec.Unschedulable:
		return "is cordoned"
	case n.Labels[corev1.LabelOSStable] != "" && n.Labels[corev1.LabelOSStable] != "linux":
		return "has " + n.Labels[corev1.LabelOSStable]
	case !wish.Selector.Matches(labels.Set(n.Labels)):
		return "has not the labels of node-selector"
	}
	for _, t := range n.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(t, wish.Tolerations) {
			return fmt.Sprintf("has the taint %s:%s", t.Key, t.Effect)
		}
	}
	return ""
}

// tolerated is the scheduler's rule.
func tolerated(t corev1.Taint, list []corev1.Toleration) bool {
	return slices.ContainsFunc(list, func(o corev1.Toleration) bool {
		if o.Effect != "" && o.Effect != t.Effect || o.Key != "" && o.Key != t.Key {
			return false
		}
		if o.Operator == corev1.TolerationOpExists {
			return true
		}
		return o.Key != "" && (o.Operator == "" || o.Operator == corev1.TolerationOpEqual) && o.Value == t.Value
	})
}

// A NodeChoice is the nodes of an experiment.
type NodeChoice struct {
	Pairs [][2]worker // client's and server's, for the blocks in turn; both may be nil
	alone []worker    // the client's where both ends are on one node
	why   error       // why there are no pairs
	Rule  string
}

// Unseen is the choice of nodes that the user names and that nobody may list.
func Unseen(wish NodeWish) NodeChoice {
	c := NodeChoice{Rule: "named by the options, unseen: nodes may not be listed", alone: []worker{{Name: wish.Client}}}
	if wish.Server == "" {
		c.why = result.NotSupported("nodes may not be listed, and server-node= names none")
	} else {
		c.Pairs = [][2]worker{{{Name: wish.Client}, {Name: wish.Server}}}
	}
	return c
}

// choice picks the nodes of an experiment from those of a cluster.
func ChoiceOf(nodes []corev1.Node, wish NodeWish) (NodeChoice, error) {
	fit, unfit := workers(nodes, wish)
	return choose(fit, unfit, wish)
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

// choose picks the nodes of an experiment by a rule that its facts tell. One pair for all blocks, unless
// nodes are rotated: then all ordered pairs in turn, so that in as many blocks as there are nodes each is
// the client's once and the server's once.
func choose(fit []worker, unfit []string, wish NodeWish) (NodeChoice, error) {
	if wish.Client != "" {
		return named(fit, unfit, wish)
	}
	if len(fit) == 0 {
		return NodeChoice{}, fmt.Errorf("no node can have our pods%s; make one of them fit, or tolerate its taint in "+
			"config=", because(unfit))
	}
	c := NodeChoice{Rule: "the first two by name of the most workers in one zone and of one type"}
	group := largest(fit, func(w worker) string { return w.Zone + "\x00" + w.Type })
	if wish.Across {
		c.Rule = "the first by name of the workers of one type, and the first in another zone"
		group = largest(fit, func(w worker) string { return w.Type })
	}
	c.Pairs = pairs(group, wish.Across)
	c.alone = group
	if !wish.Rotate {
		c.Pairs, c.alone = c.Pairs[:min(1, len(c.Pairs))], group[:1]
		if len(c.Pairs) > 0 {
			c.alone = []worker{c.Pairs[0][0]}
		}
	} else {
		c.Rule = "all of the most workers in one zone and of one type in turn"
		if wish.Across {
			c.Rule = "all pairs of workers of one type in different zones in turn"
		}
	}
	if len(c.Pairs) == 0 {
		c.why = noPair(fit, unfit, wish)
	}
	return c, nil
}

func noPair(fit []worker, unfit []string, wish NodeWish) error {
	switch {
	case len(fit) == 1:
		return result.NotSupported(fmt.Sprintf("there is no second node for the server: only %s can have our pods%s",
			fit[0].Name, because(unfit)))
	case wish.Across:
		return result.NotSupported("no two workers of one type are in different zones; client-node= and server-node= name " +
			"any two")
	}
	return result.NotSupported("no two workers are in one zone and of one type; zones=across compares zones, " +
		"client-node= and server-node= name any two")
}

func because(unfit []string) string {
	if len(unfit) == 0 {
		return ""
	}
	const most = 4
	more := ""
	if n := len(unfit) - most; n > 0 {
		unfit, more = unfit[:most], fmt.Sprintf(" and %d more", n)
	}
	return " (" + strings.Join(unfit, "; ") + more + ")"
}

// named are the nodes that the options name.
func named(fit []worker, unfit []string, wish NodeWish) (NodeChoice, error) {
	find := func(name string) (worker, error) {
		i := slices.IndexFunc(fit, func(w worker) bool { return w.Name == name })
		if i < 0 {
			for _, why := range unfit {
				if strings.HasPrefix(why, name+" ") && !strings.HasSuffix(why, "control plane") {
					return worker{}, fmt.Errorf("node %s; name another node%s", why, unfitRemedy(why))
				}
			}
			return worker{}, fmt.Errorf("the cluster has no worker %s", name)
		}
		return fit[i], nil
	}
	c := NodeChoice{Rule: "named by the options"}
	a, err := find(wish.Client)
	if err != nil {
		return c, fmt.Errorf("client-node: %w", err)
	}
	c.alone = []worker{a}
	if wish.Server == "" {
		c.Rule = "the client's named by the options, the server's the first other worker by name"
		i := slices.IndexFunc(fit, func(w worker) bool {
			return w.Name != a.Name && w.Type == a.Type &&
				(w.Zone == a.Zone) != wish.Across
		})
		if i < 0 {
			c.why = noPair([]worker{a}, unfit, wish)
			return c, nil
		}
		c.Pairs = [][2]worker{{a, fit[i]}}
		return c, nil
	}
	b, err := find(wish.Server)
	if err != nil {
		return c, fmt.Errorf("server-node: %w", err)
	}
	c.Pairs = [][2]worker{{a, b}}
	return c, nil
}

// unfitRemedy is what else can be done about a node that can not have our pods.
func unfitRemedy(why string) string {
	if strings.Contains(why, "has the taint") {
		return ", or tolerate the taint in config="
	}
	return ""
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
		w := c.alone[mod(rotation, len(c.alone))]
		return [2]worker{w, w}, nil
	}
	if len(c.Pairs) == 0 {
		return [2]worker{}, c.why
	}
	return c.Pairs[mod(rotation, len(c.Pairs))], nil
}

func mod(a, n int) int { return ((a % n) + n) % n }
