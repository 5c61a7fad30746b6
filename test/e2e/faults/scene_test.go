//go:build linux

package faults

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// A scene is an experiment under which something goes wrong.
type scene struct {
	testing.TB
	*stage
	namespace  string // given to the experiment; empty if it makes one
	own        string // the one that it made, once it was seen
	port       int    // 0: the default
	alone      bool   // on the cluster
	random     bool   // a fault strikes at any moment, and may miss
	level      string // of the namespace's Pod Security
	options    string // further ones of the target
	kubeconfig string // of the program under test
	dir        string // where it runs
	undo       []func()
	cut        func() // the connections to the API server, if they can be cut
	said       string // all that the program said, in all its runs
}

func newScene(t testing.TB, s *stage) *scene {
	return &scene{TB: t, stage: s, kubeconfig: s.Kubeconfig, level: "privileged", dir: t.TempDir()}
}

func (s *scene) target() string {
	var options []string
	if s.namespace != "" {
		options = append(options, "namespace="+s.namespace)
	}
	if s.options != "" {
		options = append(options, s.options)
	}
	if s.port != 0 {
		options = append(options, "port="+strconv.Itoa(s.port))
	}
	return strings.TrimSuffix("kube:?"+strings.Join(options, "&"), "?")
}

func (s *scene) out() string { return filepath.Join(s.dir, "disk", "out") }

// A buffer takes what a program says while others read it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A running is the program under test while it runs.
type running struct {
	*exec.Cmd
	said *buffer
	over chan struct{} // closed when it has ended
}

// start starts the program with these arguments.
func (s *scene) start(args ...string) *running {
	s.Helper()
	r := &running{Cmd: exec.Command(s.program, args...), said: &buffer{}, over: make(chan struct{})}
	r.Dir, r.Stdout, r.Stderr = s.dir, r.said, r.said
	r.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	if err := r.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = r.Wait() // its status is looked at
		close(r.over)
	}()
	return r
}

// measure starts an experiment of short runs. It shares the cluster: with those of other scenes, and with those that
// were killed.
func (s *scene) measure(more ...string) *running {
	s.Helper()
	if err := os.MkdirAll(filepath.Dir(s.out()), 0o755); err != nil {
		s.Fatal(err)
	}
	for _, usual := range [][2]string{{"--duration", "1s"}, {"--warmup", "100ms"}} {
		if !slices.Contains(more, usual[0]) {
			more = append(more, usual[:]...)
		}
	}
	return s.start(append([]string{"run", "--share", "--yes", "--target", s.target(), "--seed", "1", "--out", s.out(),
		"--progress", "plain"}, more...)...)
}

// patience is how long the program may take to its end. It is no claim on speed.
const patience = 10 * time.Minute

// end waits for the program's end and returns its status.
func (s *scene) end(r *running) int {
	s.Helper()
	select {
	case <-r.over:
	case <-time.After(patience):
		_ = r.Process.Signal(syscall.SIGQUIT)
		<-r.over
		s.Errorf("%q did not end", r.Args)
	}
	s.said += r.String()
	return r.ProcessState.ExitCode()
}

// String is what the program has said.
func (r *running) String() string { return r.said.String() }

func (r *running) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// runs are those that are in the results directory now; nil if there is no experiment in it yet.
func (s *scene) runs() []result.Run {
	s.Helper()
	if _, err := os.Stat(filepath.Join(s.out(), store.ExperimentFile)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	r, err := store.Open(s.out())
	if err != nil {
		s.Errorf("the results cannot be read: %v", err)
		return nil
	}
	for _, run := range r.Runs {
		if _, err := r.Raw(run.ID); err != nil && run.Valid() {
			s.Errorf("a run's raw files: %v", err)
		}
		if !run.Valid() && strings.TrimSpace(run.Invalid[0].Text) == "" {
			s.Errorf("run %s is invalid and does not say why", run.ID)
		}
	}
	return r.Runs
}

func valid(runs []result.Run) int {
	n := 0
	for _, r := range runs {
		if r.Valid() {
			n++
		}
	}
	return n
}

// awaitRun waits until there are runs and the next one is being measured, so that what is done now is done in its
// midst.
func (s *scene) awaitRun(r *running, runs int) {
	s.Helper()
	last, busy := time.Duration(-1), 0
	eventually(s, "the middle of a run\n"+r.String(), 2*time.Minute, func() bool {
		used := s.cpuTime(s, s.podUIDs())
		if len(s.runs()) >= runs && last >= 0 && used-last >= atWork {
			busy++ // the first time it may be the end of the run before
		} else {
			busy = 0
		}
		last = used
		return r.ended() || busy == 2
	})
	if r.ended() {
		s.Fatalf("it ended before anything went wrong:\n%s", r)
	}
	time.Sleep(300 * time.Millisecond) // into the window
}

// atWork is what pods use of the CPU between two looks at least while they measure.
const atWork = 2 * time.Millisecond

// podUIDs are the UIDs of the experiment's pods now.
func (s *scene) podUIDs() []string {
	pods, err := s.CoreV1().Pods(s.where()).List(context.Background(),
		metav1.ListOptions{LabelSelector: e2e.Managed})
	if err != nil {
		return nil
	}
	var list []string
	for _, p := range pods.Items {
		list = append(list, string(p.UID))
	}
	return list
}

// where is the namespace that the experiment is in; empty if there is none now.
func (s *scene) where() string {
	if s.namespace != "" {
		return s.namespace
	}
	found, err := s.CoreV1().Namespaces().List(context.Background(),
		metav1.ListOptions{LabelSelector: e2e.Managed})
	if err != nil || len(found.Items) == 0 {
		return "there-is-none"
	}
	s.own = found.Items[0].Name
	return s.own
}

// lost are the runs of before that are not among those of now as they were.
func lost(before, now []result.Run) []string {
	var list []string
	for _, b := range before {
		same := func(r result.Run) bool {
			return r.ID == b.ID && r.Start.Equal(b.Start) && r.Valid() == b.Valid() && len(r.Values) == len(b.Values)
		}
		if !slices.ContainsFunc(now, same) {
			list = append(list, b.ID)
		}
	}
	return list
}

// readable checks that the comparison can be made of what there is.
func (s *scene) readable() {
	s.Helper()
	if r := s.start("compare", s.out()); s.end(r) != 0 {
		s.Errorf("the results cannot be compared:\n%s", r)
	}
}

// resume goes on with the experiment, which must complete.
func (s *scene) resume(blocks int) {
	s.Helper()
	before := s.runs()
	r := s.start("run", "--share", "--yes", "--resume", s.out(), "--progress", "plain")
	if status := s.end(r); status != 0 {
		s.Errorf("resumed, it ended with status %d:\n%s", status, r)
	}
	s.complete(before, blocks)
}

// complete checks that every case has all of its blocks and nothing was given up or lost.
func (s *scene) complete(before []result.Run, blocks int) {
	s.Helper()
	results, err := store.Open(s.out())
	if err != nil {
		s.Fatal(err)
	}
	if gone := lost(before, results.Runs); len(gone) > 0 {
		s.Errorf("lost the runs %v", gone)
	}
	for _, n := range results.Experiment.NotMeasured {
		if !strings.Contains(n.Reason, "node paths") {
			s.Errorf("not measured: %+v", n)
		}
	}
	for _, c := range results.Experiment.Cases {
		done := map[int]bool{}
		for _, r := range results.Runs {
			if r.Case == c.Name && r.Valid() {
				done[r.Block] = true
			}
		}
		if len(done) != blocks {
			s.Errorf("%s has %d of %d blocks", c.Name, len(done), blocks)
		}
	}
}

// nothingLeft checks that nothing of the experiment is on the cluster any more.
func (s *scene) nothingLeft() {
	s.Helper()
	var left []string
	for range 20 { // a process that was killed is gone a moment later
		left = s.remains()
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Errorf("left: %v\n%s", left, s.said)
}

// remains are what there is of the experiment: in its namespace, or on the whole cluster.
func (s *scene) remains() []string {
	all := s.left(s)
	if s.alone {
		return all
	}
	in := s.namespace
	if in == "" {
		in = s.own
	}
	return slices.DeleteFunc(all, func(name string) bool {
		return !strings.Contains(name, " "+in+"/") &&
			name != "namespace "+in
	})
}
