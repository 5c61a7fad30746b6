//go:build linux

package paths

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// measureChanges measures one block of each case of dynamics and returns a run of each. Runs whose prober was late
// because this machine is busy count, since that is no fault of the program.
func measureChanges(t *testing.T, c cluster, cases ...string) map[string]result.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	args := []string{"run", "--yes", "--target", c.target(), "--blocks", "1", "--out", dir, "--progress", "plain"}
	for _, name := range cases {
		args = append(args, "--case", "dynamics/"+name)
	}
	output, err := exec.CommandContext(t.Context(), e2e.Program(t), args...).CombinedOutput()
	by := map[string]result.Run{}
	for _, run := range e2e.Runs(t, dir, string(output)) {
		if busy := func(w result.Warning) bool { return w.Code == result.GeneratorLate }; !slices.ContainsFunc(run.Invalid,
			func(w result.Warning) bool { return !busy(w) }) {
			by[strings.TrimPrefix(run.Case, "dynamics/")] = run
		}
	}
	for _, name := range cases {
		if _, is := by[name]; !is {
			t.Fatalf("%s was not measured: %v\n%s", name, err, output)
		}
	}
	return by
}

// number returns a value of a run, and fails the test if the run does not have it.
func number(t *testing.T, r result.Run, name string) float64 {
	t.Helper()
	v, is := r.Value(name)
	if !is {
		t.Errorf("%s has no %s", r.Case, name)
	}
	return v.Number
}

// TestDynamics checks that every change is made and observed, and nothing of it is left.
func TestDynamics(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	all := e2e.Open(t)
	const programming, window = metric.NewProbes + metric.Programming, metric.NewProbes + metric.LossWindow
	const abrupt, cut = "endpoint-gone:how=abrupt", "policy-established"
	byResource := []map[string]string{
		{"first-packet:trials=1": programming},
		{"service-programming:trials=1": programming},
		{"endpoint-ready:at=same,trials=1": programming, "endpoint-gone": window, abrupt: window},
		{"rollout": window},
	}
	if c.network(t).enforces {
		byResource = append(byResource, map[string]string{"policy-deny:trials=1": programming,
			"policy-allow:trials=1": programming, "policy-first:trials=1": metric.LeakWindow,
			cut: metric.TCPProbes + metric.Broken})
	}
	for _, about := range byResource {
		runs := measureChanges(t, c, slices.Sorted(maps.Keys(about))...)
		for name, run := range runs {
			got := number(t, run, about[name])
			if name == cut {
				continue // the network decides whether it cuts open connections
			}
			if got <= 0 || len(run.Warnings) > 0 {
				t.Errorf("%s: %s is %v, %v", name, about[name], got, run.Warnings)
			}
		}
		if gone, is := runs[abrupt]; is && number(t, gone, metric.NewProbes+metric.Lost) == 0 {
			t.Error("no connection to a Service failed whose pod went without notice")
		}
		all.NothingLeft(t)
	}
}

// TestDynamicsStopped stops the agent that programs the datapath as soon as there is a change to program. The measured
// duration must be at least as long as the stop, by the test's own watch and clock.
func TestDynamicsStopped(t *testing.T) {
	c := cluster{e2e.OpenLocal(t)}
	all := e2e.Open(t)
	ours := metav1.ListOptions{LabelSelector: e2e.Managed}
	for _, test := range []struct {
		name, agent string
		stopped     time.Duration
		watch       func() (watch.Interface, error)
	}{
		{"policy-deny", "calico-node -felix", 500 * time.Millisecond,
			func() (watch.Interface, error) {
				return all.NetworkingV1().NetworkPolicies("").Watch(t.Context(), ours)
			}},
		{"service-programming", "kube-proxy --kubeconfig", 3 * time.Second,
			func() (watch.Interface, error) { return all.CoreV1().Services("").Watch(t.Context(), ours) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			agents := c.Processes(t, test.agent)
			if len(agents) == 0 {
				t.Skipf("the cluster has no %s", test.agent)
			}
			signal := func(s syscall.Signal) {
				for _, pid := range agents {
					_ = syscall.Kill(pid, s) // a process that has ended does not stop; the check below fails then
				}
			}
			w, err := test.watch()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for e := range w.ResultChan() {
					if e.Type == watch.Added {
						signal(syscall.SIGSTOP)
						time.Sleep(test.stopped)
						signal(syscall.SIGCONT)
					}
				}
			}()
			defer func() {
				w.Stop()
				<-ended
				signal(syscall.SIGCONT)
			}()
			run := measureChanges(t, c, test.name)[test.name]
			// An agent may be faster than the test's watch at times, but not always.
			longest := number(t, run, metric.NewProbes+metric.ProgrammingMax)
			t.Logf("stopped for %v: median %.3f s, longest %.3f s", test.stopped,
				number(t, run, metric.NewProbes+metric.Programming), longest)
			if longest < test.stopped.Seconds() {
				t.Errorf("%s was stopped for %v, and the longest trial took %.3f s", test.agent, test.stopped, longest)
			}
		})
	}
	all.NothingLeft(t)
}
