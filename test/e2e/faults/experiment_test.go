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

// An experiment runs the program under a fault.
type experiment struct {
	testing.TB
	*testbed
	namespace  string   // existing namespace for the experiment; empty if it makes one
	own        string   // the namespace that it made, once where has found it
	port       int      // 0: the default
	alone      bool     // no other experiment is on the cluster
	random     bool     // the fault is injected at a random moment, and may miss
	level      string   // Pod Security Standard of the namespace
	options    string   // additional options of the target
	kubeconfig string   // of the program under test
	dir        string   // working directory of the program
	undo       []func() // called by tearDown, the last first
	cut        func()   // cuts the connections to the API server; may be nil
	output     string   // of all processes of the program that have ended
}

func newExperiment(t testing.TB, s *testbed) *experiment {
	return &experiment{TB: t, testbed: s, kubeconfig: s.Kubeconfig, level: "privileged", dir: t.TempDir()}
}

func (s *experiment) target() string {
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

func (s *experiment) out() string { return filepath.Join(s.dir, "disk", "out") }

// A buffer is a bytes.Buffer that can be written and read concurrently.
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

// A running is a process of the program under test.
type running struct {
	*exec.Cmd
	output *buffer
	exited chan struct{} // closed when the process has ended
}

// start starts the program with these arguments, in the experiment's directory.
func (s *experiment) start(args ...string) *running {
	s.Helper()
	r := &running{Cmd: exec.Command(s.program, args...), output: &buffer{}, exited: make(chan struct{})}
	r.Dir, r.Stdout, r.Stderr = s.dir, r.output, r.output
	r.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	if err := r.Start(); err != nil {
		s.Fatal(err)
	}
	go func() {
		_ = r.Wait() // end returns its status
		close(r.exited)
	}()
	return r
}

// measure starts an experiment of short runs. It shares the cluster with other experiments, and with the leftovers of
// killed programs.
func (s *experiment) measure(more ...string) *running {
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

// exitTimeout is how long the program may take to end. It is generous: the test does not measure speed.
const exitTimeout = 10 * time.Minute

// end waits for the end of the process and returns its exit status.
func (s *experiment) end(r *running) int {
	s.Helper()
	select {
	case <-r.exited:
	case <-time.After(exitTimeout):
		_ = r.Process.Signal(syscall.SIGQUIT)
		<-r.exited
		s.Errorf("%q did not end", r.Args)
	}
	s.output += r.String()
	return r.ProcessState.ExitCode()
}

// String returns the output of the process so far.
func (r *running) String() string { return r.output.String() }

// ended reports whether the process has ended.
func (r *running) ended() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// runs returns the runs in the results directory; nil if it has no experiment yet.
func (s *experiment) runs() []result.Run {
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
			s.Errorf("run %s is invalid without a reason", run.ID)
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

// awaitRun waits until the results have at least this many runs and the program is in the middle of the next one.
func (s *experiment) awaitRun(r *running, runs int) {
	s.Helper()
	last, busy := time.Duration(-1), 0
	eventually(s, "the middle of a run\n"+r.String(), 2*time.Minute, func() bool {
		used := s.cpuTime(s, s.podUIDs())
		if len(s.runs()) >= runs && last >= 0 && used-last >= busyTime {
			busy++ // the first time may be the end of the previous run
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

// busyTime is the least CPU time of the pods between two polls during a run.
const busyTime = 2 * time.Millisecond

// podUIDs returns the UIDs of the experiment's current pods.
func (s *experiment) podUIDs() []string {
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

// where returns the namespace of the experiment; "there-is-none" if it does not exist now.
func (s *experiment) where() string {
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

// lost returns the IDs of runs that are in before, but not unchanged in now.
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

// checkReadable checks that the results can be compared.
func (s *experiment) checkReadable() {
	s.Helper()
	if r := s.start("compare", s.out()); s.end(r) != 0 {
		s.Errorf("the results cannot be compared:\n%s", r)
	}
}

// resume resumes the experiment, which must complete.
func (s *experiment) resume(blocks int) {
	s.Helper()
	before := s.runs()
	r := s.start("run", "--share", "--yes", "--resume", s.out(), "--progress", "plain")
	if status := s.end(r); status != 0 {
		s.Errorf("resumed, it ended with status %d:\n%s", status, r)
	}
	s.checkComplete(before, blocks)
}

// checkComplete checks that every case has all of its blocks, and that no case was given up and no run lost.
func (s *experiment) checkComplete(before []result.Run, blocks int) {
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

// nothingLeft checks that nothing of the experiment is left on the cluster, at most 2 s after its end.
func (s *experiment) nothingLeft() {
	s.Helper()
	var left []string
	for range 20 { // a killed process ends a moment later
		left = s.remains()
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Errorf("left: %v\n%s", left, s.output)
}

// remains returns the objects and agents of the experiment: in its namespace, or on the whole cluster if it is alone.
func (s *experiment) remains() []string {
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
