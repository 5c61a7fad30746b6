package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
	"github.com/knotmeter/knotmeter/internal/target/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// What becomes of the pods and of their nodes during a run is told by watches that are open all the while: one for the
// pods of a site, from their making to their end, and one for each node, which lasts as long as the experiment. So
// nothing is missed for being short, and a run takes no further requests.

// A ward is what is known of the pods of a site.
type ward struct {
	want    int // pods
	mu      sync.Mutex
	pods    map[string]*corev1.Pod // as last seen, by name; those that are gone too
	gone    map[string]bool
	changed chan struct{} // holds something if there is news
	err     error         // why there will be no more
	end     context.CancelFunc
}

// watchPods begins to watch the pods of a site.
func (s *site) watchPods() *ward {
	ctx, end := context.WithCancel(context.Background())
	w := &ward{want: len(s.plan.roles()), pods: map[string]*corev1.Pod{}, gone: map[string]bool{}, changed: make(chan struct{}, 1), end: end}
	pods := s.cluster.CoreV1().Pods(s.plan.namespace)
	which := metav1.ListOptions{LabelSelector: s.plan.selector()}
	first := true
	open := func(ctx context.Context) (watch.Interface, error) {
		if first { // tells of each pod that there is
			opened, err := pods.Watch(ctx, which)
			first = err != nil
			return opened, err
		}
		found, err := pods.List(ctx, which)
		if err != nil {
			return nil, err
		}
		w.relist(found.Items)
		from := which
		from.ResourceVersion = found.ResourceVersion
		return pods.Watch(ctx, from)
	}
	go func() {
		for {
			err := follow(ctx, open, func(e watch.Event) (bool, error) { w.see(e); return false, nil })
			if first || ctx.Err() != nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || pause(ctx, time.Second) != nil {
				w.fail(err)
				return
			}
		}
	}()
	return w
}

func (w *ward) see(e watch.Event) {
	p, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	w.pods[p.Name], w.gone[p.Name] = p, e.Type == watch.Deleted
	w.mu.Unlock()
	w.tell()
}

// relist takes what there is after a time without news.
func (w *ward) relist(found []corev1.Pod) {
	w.mu.Lock()
	for name := range w.pods {
		w.gone[name] = true
	}
	for i := range found {
		w.pods[found[i].Name], w.gone[found[i].Name] = &found[i], false
	}
	w.mu.Unlock()
	w.tell()
}

func (w *ward) fail(err error) {
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	w.tell()
}

func (w *ward) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// until calls look whenever there is news, and now and then, until it is done or fails, or ctx ends. look has the ward
// to itself meanwhile.
func (w *ward) until(ctx context.Context, look func() (bool, error)) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		done, err := look()
		if err == nil {
			err = w.err
		}
		w.mu.Unlock()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.changed:
		case <-ticker.C:
		}
	}
}

// sawAll says whether all pods of a site were ever seen.
func (w *ward) sawAll() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods) == w.want && w.err == nil
}

// allGone says whether none of the pods is left, to until.
func (w *ward) allGone() (bool, error) {
	for name := range w.pods {
		if !w.gone[name] {
			return false, nil
		}
	}
	return true, nil
}

// ailments are what became of the pods that run since began.
func (w *ward) ailments(began map[string]*corev1.Pod) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for name, before := range began {
		if why := diagnosis.PodAilment(before, w.pods[name], w.gone[name]); why != "" {
			list = append(list, why)
		}
	}
	slices.Sort(list)
	return list
}

// A monitor is what a node has said of its health since it is watched. What it tells is only ever added to, so that a
// place in it stands for a moment.
type monitor struct {
	mu   sync.Mutex
	last map[corev1.NodeConditionType]corev1.NodeCondition
	bad  map[corev1.NodeConditionType]string // what is wrong now
	told []string
	seen chan struct{} // closed when the node was first seen, or can not be
	once sync.Once
	lost error // why nothing more is seen
}

func newMonitor() *monitor {
	return &monitor{last: map[corev1.NodeConditionType]corev1.NodeCondition{}, bad: map[corev1.NodeConditionType]string{}, seen: make(chan struct{})}
}

// see takes what the node says now. That a condition is as it was but has changed in between shows in the time of its
// change, so that not even a broken watch misses it; that time is compared with itself only, and no clock counts.
func (m *monitor) see(n *corev1.Node, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone {
		m.told = append(m.told, fmt.Sprintf("node %s was removed from the cluster", n.Name))
	}
	for _, c := range n.Status.Conditions {
		good, watched := diagnosis.NodeHealthy(c.Type)
		if !watched {
			continue
		}
		before, known := m.last[c.Type]
		m.last[c.Type] = c
		changed := !known || !before.LastTransitionTime.Equal(&c.LastTransitionTime) || before.Status != c.Status
		switch {
		case c.Status != good && changed:
			m.bad[c.Type] = diagnosis.NodeAilment(n.Name, c)
			m.told = append(m.told, m.bad[c.Type])
		case c.Status == good:
			if known && before.Status == good && changed {
				m.told = append(m.told, fmt.Sprintf("node %s %s for a moment in which it could not be watched", n.Name, diagnosis.NodeIll(c.Type)))
			}
			delete(m.bad, c.Type)
		}
	}
	m.once.Do(func() { close(m.seen) })
}

// A moment is how far a node had told, and what was wrong with it.
type moment struct {
	told int
	bad  []string
}

// now is this moment.
func (m *monitor) now() moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return moment{len(m.told), slices.Collect(maps.Values(m.bad))}
}

// since are what was wrong with the node at a moment or became so later, each once.
func (m *monitor) since(then moment) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Concat(then.bad, m.told[then.told:])
	slices.Sort(list)
	return slices.Compact(list)
}

func (m *monitor) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = err
	m.once.Do(func() { close(m.seen) })
}

func (m *monitor) watched() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost == nil && len(m.last) > 0
}

// seeTime is how long a node may take to be seen first.
const seeTime = 2 * time.Second

// attend has nodes watched, and returns when each was seen or can not be.
func (k *kubeTarget) attend(ctx context.Context, names ...string) {
	limited, cancel := context.WithTimeout(ctx, seeTime)
	defer cancel()
	for _, name := range names {
		m := k.monitors[name]
		if m == nil {
			m = newMonitor()
			if k.monitors == nil {
				k.monitors = map[string]*monitor{}
				k.attending, k.leave = context.WithCancel(context.Background())
			}
			k.monitors[name] = m
			go k.cluster.watchNode(k.attending, name, m)
		}
		select {
		case <-m.seen:
		case <-limited.Done():
		}
	}
}

// watchNode watches a node until ctx ends, or may not.
func (c *cluster) watchNode(ctx context.Context, name string, m *monitor) {
	open := func(ctx context.Context) (watch.Interface, error) {
		return c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	}
	for {
		err := follow(ctx, open, func(e watch.Event) (bool, error) {
			if n, ok := e.Object.(*corev1.Node); ok {
				m.see(n, e.Type == watch.Deleted)
			}
			return false, nil
		})
		if apierrors.IsForbidden(err) || pause(ctx, time.Second) != nil {
			m.fail(err)
			return
		}
	}
}

// watched says whether the health of all nodes that runs were on is known.
func (k *kubeTarget) watched() string {
	for _, m := range k.monitors {
		if !m.watched() {
			return result.Unknown
		}
	}
	return inspection.Known("watched during runs", len(k.monitors) > 0)
}

// health is what became of the site since it was opened that makes a run in it count for nothing.
func (s *site) health(ctx context.Context) []string {
	var list []string
	list = append(list, s.ward.ailments(s.pods)...)
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		list = append(list, s.nodes[name].since(s.began[name])...)
	}
	return append(list, s.throttled(ctx)...)
}

// throttled asks both places whether they ran out of a quota of CPU time, if they have one.
func (s *site) throttled(ctx context.Context) []string {
	var list []string
	for _, r := range s.plan.roles() {
		before := map[manifest.Role]preflight.Report{manifest.Client: s.client, manifest.Server: s.server}[r]
		if !inspection.Limited(s.pods[s.plan.name(r)]) {
			continue
		}
		after, err := s.report(ctx, r, preflight.Spec{Version: preflight.Version, Role: preflight.Witness, Patience: meetTime})
		if err != nil {
			continue // a place that does not answer has lost its run too
		}
		if n := after.Throttled - before.Throttled; n > 0 {
			list = append(list, fmt.Sprintf("the CPU of %s was throttled %d times by its limit of %s; give its pods more in config=, or another namespace=",
				s.plan.hostName(r), n, inspection.CPULimit(s.pods[s.plan.name(r)])))
		}
	}
	return list
}

// newsTime is how long the reason of a lost connection may take to be known.
const newsTime = 2 * time.Second

// lost adds to the error of a lost connection what became of the pods, which may be known a moment later.
func (s *site) lost(ctx context.Context, err error) error {
	if !errors.Is(err, remote.ErrLost) || s.ward == nil || s.pods == nil || s.life.Err() != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, newsTime)
	defer cancel()
	for limited.Err() == nil {
		if why := s.ward.ailments(s.pods); len(why) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(why, "; "), err)
		}
		_ = pause(limited, newsTime/20)
	}
	return err
}
