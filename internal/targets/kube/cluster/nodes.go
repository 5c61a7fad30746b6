package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/diagnosis"
)

// A nodeWatch is what a node has reported of its health since it is watched. Reports are only ever added, so that a
// place among them stands for a moment.
type nodeWatch struct {
	mu   sync.Mutex
	last map[corev1.NodeConditionType]corev1.NodeCondition
	bad  map[corev1.NodeConditionType]string // what is wrong now
	told []string
	seen chan struct{} // closed when the node was first seen, or cannot be
	once sync.Once
	lost error // why nothing more is seen
}

func newNodeWatch() *nodeWatch {
	return &nodeWatch{
		last: map[corev1.NodeConditionType]corev1.NodeCondition{}, bad: map[corev1.NodeConditionType]string{},
		seen: make(chan struct{}),
	}
}

// see takes what the node reports now. That a condition is as it was but has changed in between shows in the time of
// its change, so that not even a broken watch misses it; that time is compared with itself only, and no clock counts.
func (w *nodeWatch) see(n *corev1.Node, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone {
		w.told = append(w.told, fmt.Sprintf("node %s was removed from the cluster", n.Name))
	}
	for _, c := range n.Status.Conditions {
		good, watched := diagnosis.HealthyStatus(c.Type)
		if !watched {
			continue
		}
		before, known := w.last[c.Type]
		w.last[c.Type] = c
		changed := !known || !before.LastTransitionTime.Equal(&c.LastTransitionTime) || before.Status != c.Status
		switch {
		case c.Status != good && changed:
			w.bad[c.Type] = diagnosis.NodeDisruption(n.Name, c)
			w.told = append(w.told, w.bad[c.Type])
		case c.Status == good:
			if known && before.Status == good && changed {
				w.told = append(w.told, fmt.Sprintf("node %s %s for a moment in which it could not be watched", n.Name,
					diagnosis.ConditionText(c.Type)))
			}
			delete(w.bad, c.Type)
		}
	}
	w.once.Do(func() { close(w.seen) })
}

// A moment is how much a node had reported, and what was wrong with it.
type moment struct {
	node *nodeWatch
	told int
	bad  []string
}

// now is this moment.
func (w *nodeWatch) now() moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return moment{w, len(w.told), slices.Collect(maps.Values(w.bad))}
}

// since are what was wrong with the node at a moment or became so later.
func (m moment) since() []string {
	m.node.mu.Lock()
	defer m.node.mu.Unlock()
	return slices.Concat(m.bad, m.node.told[m.told:])
}

func (w *nodeWatch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = err
	w.once.Do(func() { close(w.seen) })
}

// Nodes are watched from the first site on them to the end of the experiment, each by one watch.
type Nodes struct {
	api     corev1client.NodeInterface
	watches map[string]*nodeWatch
	life    context.Context
	end     context.CancelFunc
}

// NewNodes watches none yet.
func NewNodes(api corev1client.NodeInterface) *Nodes {
	n := &Nodes{api: api, watches: map[string]*nodeWatch{}}
	n.life, n.end = context.WithCancel(context.Background())
	return n
}

// End ends all watches.
func (n *Nodes) End() { n.end() }

// seeTime is how long a node may take to be seen first.
const seeTime = 2 * time.Second

// A Period is a time on some nodes, from the moment of each on.
type Period []moment

// From begins a period on some nodes, once each was seen or cannot be.
func (n *Nodes) From(ctx context.Context, names ...string) Period {
	limited, cancel := context.WithTimeout(ctx, seeTime)
	defer cancel()
	for _, name := range names {
		w := n.watches[name]
		if w == nil {
			w = newNodeWatch()
			n.watches[name] = w
			go n.watch(name, w)
		}
		select {
		case <-w.seen:
		case <-limited.Done():
		}
	}
	var p Period
	for _, name := range names {
		p = append(p, n.watches[name].now())
	}
	return p
}

// watch watches a node until the end, or until it may not.
func (n *Nodes) watch(name string, w *nodeWatch) {
	open := func(ctx context.Context) (watch.Interface, error) { return n.api.Watch(ctx, Named(name)) }
	see := func(e watch.Event) {
		if node, ok := e.Object.(*corev1.Node); ok {
			w.see(node, e.Type == watch.Deleted)
		}
	}
	w.fail(keep(n.life, open, see, apierrors.IsForbidden))
}

// Watched says whether the health of all nodes that there were sites on is known.
func (n *Nodes) Watched() bool {
	for _, w := range n.watches {
		w.mu.Lock()
		known := w.lost == nil && len(w.last) > 0
		w.mu.Unlock()
		if !known {
			return false
		}
	}
	return len(n.watches) > 0
}

// Ailments are what was wrong with the nodes at the beginning or became so later, each once.
func (p Period) Ailments() []string {
	var list []string
	for _, m := range p {
		list = append(list, m.since()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
