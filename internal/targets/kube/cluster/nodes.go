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

// A nodeWatch records what a node reports about its health. Reports are only appended, so the number of reports marks a
// point in time.
type nodeWatch struct {
	mu      sync.Mutex
	last    map[corev1.NodeConditionType]corev1.NodeCondition
	bad     map[corev1.NodeConditionType]string // current problems
	reports []string
	seen    chan struct{} // closed after the first event, or when watching failed
	once    sync.Once
	err     error // why the watch ended
}

func newNodeWatch() *nodeWatch {
	return &nodeWatch{
		last: map[corev1.NodeConditionType]corev1.NodeCondition{}, bad: map[corev1.NodeConditionType]string{},
		seen: make(chan struct{}),
	}
}

// record takes an event of the node. If a condition changed and changed back between two events, its LastTransitionTime
// shows that, so an interrupted watch misses nothing. That time is compared only with earlier values of itself, so
// clocks need not agree.
func (w *nodeWatch) record(n *corev1.Node, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if gone {
		w.reports = append(w.reports, fmt.Sprintf("node %s was removed from the cluster", n.Name))
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
			w.reports = append(w.reports, w.bad[c.Type])
		case c.Status == good:
			if known && before.Status == good && changed {
				w.reports = append(w.reports, fmt.Sprintf("node %s %s for a moment in which it could not be watched", n.Name,
					diagnosis.ConditionText(c.Type)))
			}
			delete(w.bad, c.Type)
		}
	}
	w.once.Do(func() { close(w.seen) })
}

// A nodeSnapshot marks a point in time: the number of reports so far, and the problems then.
type nodeSnapshot struct {
	node    *nodeWatch
	reports int
	bad     []string
}

func (w *nodeWatch) snapshot() nodeSnapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return nodeSnapshot{w, len(w.reports), slices.Collect(maps.Values(w.bad))}
}

// problemsSince returns the problems at the snapshot and those reported after it.
func (m nodeSnapshot) problemsSince() []string {
	m.node.mu.Lock()
	defer m.node.mu.Unlock()
	return slices.Concat(m.bad, m.node.reports[m.reports:])
}

func (w *nodeWatch) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.once.Do(func() { close(w.seen) })
}

// Nodes watches nodes, each with one watch from the first site on it to End.
type Nodes struct {
	api     corev1client.NodeInterface
	watches map[string]*nodeWatch
	ctx     context.Context
	cancel  context.CancelFunc
}

// NewNodes returns a watcher of no nodes yet; StartPeriod adds them.
func NewNodes(api corev1client.NodeInterface) *Nodes {
	n := &Nodes{api: api, watches: map[string]*nodeWatch{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// End ends all watches.
func (n *Nodes) End() { n.cancel() }

// firstEventTime limits the wait for the first events of all nodes.
const firstEventTime = 2 * time.Second

// A Period begins at one point in time, with a snapshot of each node.
type Period []nodeSnapshot

// StartPeriod starts a period on the named nodes, after the first event of each or after firstEventTime.
func (n *Nodes) StartPeriod(ctx context.Context, names ...string) Period {
	limited, cancel := context.WithTimeout(ctx, firstEventTime)
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
		p = append(p, n.watches[name].snapshot())
	}
	return p
}

// watch watches a node until End, or until it turns out that the user may not.
func (n *Nodes) watch(name string, w *nodeWatch) {
	open := func(ctx context.Context) (watch.Interface, error) { return n.api.Watch(ctx, ByName(name)) }
	see := func(e watch.Event) {
		if node, ok := e.Object.(*corev1.Node); ok {
			w.record(node, e.Type == watch.Deleted)
		}
	}
	w.fail(watchUntilFinal(n.ctx, open, see, apierrors.IsForbidden))
}

// Watched reports whether the health of all nodes with sites is known.
func (n *Nodes) Watched() bool {
	for _, w := range n.watches {
		w.mu.Lock()
		known := w.err == nil && len(w.last) > 0
		w.mu.Unlock()
		if !known {
			return false
		}
	}
	return len(n.watches) > 0
}

// Problems returns what was wrong with the nodes at the start of the period or later, sorted and without duplicates.
func (p Period) Problems() []string {
	var list []string
	for _, m := range p {
		list = append(list, m.problemsSince()...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
