package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/store"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestRememberAtOnce checks that programs that create experiments at the same time each add a complete line to their
// common file.
func TestRememberAtOnce(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	var all sync.WaitGroup
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, id := range append(ids, ids...) {
		all.Go(func() {
			if err := rememberExperiment(result.Experiment{ID: id}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	name, digests, err := ownExperiments()
	if err != nil || name != filepath.Join(state, "knotmeter", "experiments") {
		t.Fatalf("%s, %v", name, err)
	}
	for _, id := range ids {
		if d, err := planDigest(result.Experiment{ID: id}); err != nil || !slices.Contains(digests, d) {
			t.Errorf("experiment %s is not in %q, %v", id, digests, err)
		}
	}
}

// hostileKubeconfig runs a program that leaves a file in the working directory.
const hostileKubeconfig = `apiVersion: v1
kind: Config
current-context: closed
clusters: [{name: closed, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: closed, context: {cluster: closed, user: bad}}]
users:
- name: bad
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, "touch pwned"], interactiveMode: Never}
`

// writeHostile writes results in which a trial could confirm a cause, on targets whose kubeconfig runs a program.
func writeHostile(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile("kubeconfig", []byte(hostileKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	const name = "pod-pod/other/tcp-stream"
	e := result.Experiment{
		Schema: result.ExperimentSchema, ID: "hostile", Created: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Version: "v1",
		Suite: "network", Tool: "native", Design: runner.DefaultDesign(), Baseline: "a", NotMeasured: []result.NotMeasured{},
		Cases: []result.Case{{Name: name, Path: "pod-pod/other", Workload: "tcp-stream", Role: result.Primary,
			Metric: metric.Throughput}},
	}
	e.Design.Looks, e.Design.Blocks = nil, 8
	r := result.Results{Experiment: e}
	for i, congestion := range []string{"bbr", "cubic"} {
		target := string(rune('a' + i))
		spec, err := result.ParseSpec("kube:?kubeconfig=kubeconfig&label=" + target)
		if err != nil {
			t.Fatal(err)
		}
		r.Experiment.Targets = append(r.Experiment.Targets, result.Target{Name: target, Spec: spec})
		for block := range e.Design.Blocks {
			r.Runs = append(r.Runs, result.Run{
				Schema: result.RunSchema, ID: fmt.Sprintf("%s-%d", target, block+1), Case: name, Target: target,
				Block: block + 1, Attempt: 1, Slot: i + 1, Start: e.Created.Add(time.Duration(2*block+i) * time.Second),
				Window: 1, Tool: "native",
				Values: []result.Value{{Metric: metric.Throughput, Unit: unit.BitPerSecond, Better: metric.Higher,
					Number: (9 - 3*float64(i) + 0.01*float64(block)) * 1e9}},
				Facts: []result.Fact{{Name: "tcp.congestion", Value: congestion}},
			})
		}
	}
	runs := func(yield func(result.Run, []result.File) bool) {
		for _, run := range r.Runs {
			if !yield(run, nil) {
				return
			}
		}
	}
	if err := store.WriteWhole(t.Context(), dir, r.Experiment, r.Facts, runs); err != nil {
		t.Fatal(err)
	}
}

// TestActingAsks checks that no command runs a program that a results directory from elsewhere names, and that every
// command that would do so asks for consent first. A command or flag that takes a directory and is not listed fails.
func TestActingAsks(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	writeHostile(t, "received")
	acting := map[string]string{
		"run --resume":      "run --resume received --explain",
		"explain --confirm": "explain received --confirm",
	}
	reading := map[string]string{
		"compare":      "compare received",
		"report":       "report received",
		"report --out": "report received --out rendered",
		"explain":      "explain received",
		"audit":        "audit received",
		"import":       "import fio received",
		"import --out": "",
		"run --out":    "",
		"plan --from":  "plan lab:native lab:vxlan --from received",
	}
	for _, key := range takeDirectories(newRoot(Streams{}, "test")) {
		_, acts := acting[key]
		if _, reads := reading[key]; !acts && !reads {
			t.Errorf("%s takes a directory; list it here", key)
		}
	}
	for key, command := range reading {
		if command == "" {
			continue // it writes a new directory
		}
		if _, text := runHere(t, command); strings.Contains(text, "consent") {
			t.Errorf("%s asks for consent: %s", key, text)
		}
	}
	for key, command := range acting {
		status, text := runHere(t, command)
		for _, want := range []string{"consent is needed", "received: it was not made here", "sh -c touch pwned"} {
			if status != statusUsage || !strings.Contains(text, want) {
				t.Errorf("%s ends with %d without %q: %s", key, status, want, text)
			}
		}
	}
	if _, err := os.Stat("pwned"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the program of a kubeconfig was run: %v", err)
	}
}

// takeDirectories returns the commands whose operands are directories, and their flags for one.
func takeDirectories(c *cobra.Command) []string {
	var list []string
	name := strings.TrimPrefix(c.CommandPath(), ownName+" ")
	if strings.Contains(c.Use, "DIR") {
		list = append(list, name)
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if what, _ := pflag.UnquoteUsage(f); what == "DIR" {
			list = append(list, name+" --"+f.Name)
		}
	})
	for _, sub := range c.Commands() {
		list = append(list, takeDirectories(sub)...)
	}
	return list
}

// runHere runs a command line in this process, without a terminal, and returns its status and everything it printed.
func runHere(t *testing.T, line string) (status int, text string) {
	t.Helper()
	var b bytes.Buffer
	status = Main(t.Context(), Streams{In: strings.NewReader(""), Out: &b, Err: &b}, "test", strings.Fields(line))
	return status, b.String()
}

// TestConfirmInsideOnly checks that trials are neither written nor read through a link in the results directory.
func TestConfirmInsideOnly(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	writeHostile(t, "received")
	if err := os.Mkdir("victim", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../victim", "received/trials"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"explain received --confirm --yes", "explain received", "compare received"} {
		status, text := runHere(t, line)
		if status == statusDone || !strings.Contains(text, "received/trials is a symbolic link, not a directory") {
			t.Errorf("%s ends with %d: %s", line, status, text)
		}
	}
	entries, err := os.ReadDir("victim")
	if err != nil || len(entries) > 0 {
		t.Errorf("%v were written through a link, %v", entries, err)
	}
}

// TestDigestOfWholePlan checks that a change of any part of a plan changes its digest, and that what grows while it
// runs does not.
func TestDigestOfWholePlan(t *testing.T) {
	of := func(change func(*result.Experiment)) string {
		e := result.Experiment{ID: "x", Design: runner.DefaultDesign(), Cases: []result.Case{{
			Name: "app/http/shop", Definition: "url: http://shop.invalid\nrequests:\n- {name: r, path: /list}\n"}}}
		change(&e)
		d, err := planDigest(e)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	unchanged := of(func(*result.Experiment) {})
	for name, change := range map[string]func(*result.Experiment){
		"path": func(e *result.Experiment) {
			e.Cases[0].Definition = "url: http://shop.invalid\nrequests:\n- {name: r, path: /everything}\n"
		},
		"rate":   func(e *result.Experiment) { e.Cases[0].Name += ":rate=99" },
		"blocks": func(e *result.Experiment) { e.Design.Blocks++ },
		"window": func(e *result.Experiment) { e.Design.Duration = 60 },
		"tool":   func(e *result.Experiment) { e.Tool = "iperf3" },
		"gates":  func(e *result.Experiment) { e.Gates = []string{"* p99 <= +5%"} },
	} {
		if of(change) == unchanged {
			t.Errorf("another %s has the same digest", name)
		}
	}
	for name, change := range map[string]func(*result.Experiment){
		"not_measured": func(e *result.Experiment) { e.NotMeasured = []result.NotMeasured{{Target: "a"}} },
		"warnings":     func(e *result.Experiment) { e.Warnings = []result.Warning{{Text: "x"}} },
	} {
		if of(change) != unchanged {
			t.Errorf("more %s have another digest", name)
		}
	}
}
