package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A study is a series of experiments that differ in their seeds.
type study struct {
	name        string
	designs     []design // in the order of their seeds
	n           int      // default number of experiments
	cluster     bool     // experiments use the cluster of the current context, so they run one at a time
	page        string   // file in docs/
	title       string   // of the page, without the width of the intervals
	head        string   // introduction of the page
	sameTargets bool     // both targets are the same, so that the true change is 0
	found       func(comparison) bool
	rate        string // describes the experiments with a comparison that found selects
	goal        string // for their share
}

// A design is a command line for a number of seeds.
type design struct {
	title string
	seeds int      // 0: all remaining ones
	args  []string // of run, without seed and directory
	// quiet marks noise so far below delta that a comparison can hardly be different. Such experiments are not counted in
	// the study's rate, because they would hide errors.
	quiet bool
}

// counted returns the designs of which experiments count in the study's rate.
func (s study) counted() []design {
	return slices.DeleteFunc(slices.Clone(s.designs), func(d design) bool { return d.quiet })
}

// among returns the experiments of the designs.
func among(designs []design, done []experiment) []experiment {
	return slices.DeleteFunc(slices.Clone(done), func(x experiment) bool {
		return !slices.ContainsFunc(designs, func(d design) bool { return slices.Equal(x.Args, d.args) })
	})
}

// planned returns the number of experiments of a design, of those that are measured by default.
func (s study) planned(d design) int {
	if d.seeds > 0 {
		return d.seeds
	}
	n := s.n
	for _, other := range s.designs {
		n -= other.seeds
	}
	return n
}

// designOf returns the design of the experiment with a seed, from 1.
func (s study) designOf(seed uint64) design {
	last := uint64(0)
	for _, d := range s.designs {
		if last += uint64(d.seeds); d.seeds == 0 || seed <= last {
			return d
		}
	}
	return s.designs[len(s.designs)-1]
}

// The target of the cluster with number 0, and the rates and goals of studies.
const (
	onCluster  = "kube:knotmeter-test"
	falseRate  = "with a false `different`"
	falseGoal  = "at most alpha = 5 %"
	slowerRate = "with the verdict `different`, `worse`"
	slowerGoal = "at least 80 %"
)

var studies = []study{
	{
		name: "aa",
		designs: []design{
			{title: "requests, directly and through a Service: two primary comparisons", seeds: 80,
				args: runArgs("lab:native", "lab:native?label=again", "pod-pod/other/tcp-rr", "pod-svc/other/tcp-rr")},
			{title: "a stream over an underlay of 1 Gbit/s: one primary comparison", seeds: 120, quiet: true,
				args: runArgs("lab:native?rate=1Gbit/s", "lab:native?rate=1Gbit/s&label=again", "pod-pod/other/tcp-stream")},
			{title: "requests as above, with a delta of 1 %, which is below the noise: two primary comparisons",
				args: append(runArgs("lab:native", "lab:native?label=again", "pod-pod/other/tcp-rr", "pod-svc/other/tcp-rr"),
					"--delta", "1%")},
		},
		n: 320, page: "evidence/false-positives.md",
		title: "How often a difference is found where there is none, in the lab",
		head: `A/A experiments in the lab: the same target twice, under two names. Every ` + "`different`" + ` among the
primary comparisons is false. The experiments are as ` + "`run`" + ` makes them by default (looks at 8, 11, 15,
21 and 30 blocks, alpha 0.05 over all primary comparisons, delta 2 % unless a row says otherwise), but with
runs of 200 ms.
`,
		sameTargets: true, found: comparison.different, rate: falseRate, goal: falseGoal,
	},
	{
		name: "aa-cluster",
		designs: []design{
			{title: "requests: one primary comparison", seeds: 20,
				args: onClusterUntil11(onCluster, onCluster+"?label=again", "pod-pod/other/tcp-rr")},
			{title: "a stream: one primary comparison",
				args: onClusterUntil11(onCluster, onCluster+"?label=again", "pod-pod/other/tcp-stream")},
		},
		n: 40, cluster: true, page: "evidence/false-positives-cluster.md",
		title: "How often a difference is found where there is none, on a cluster",
		head: `A/A experiments on a [test cluster](../../test/cluster) with two nodes, all on one machine: one context under
two names, with fresh pods for both in each block, on the CPUs that the scheduler chooses. Every
` + "`different`" + ` is false. The experiments are as ` + "`run`" + ` makes them by default (alpha 0.05, delta 2 %),
but with runs of 200 ms and looks at 8 and 11 blocks alone.
`,
		sameTargets: true, found: comparison.different, rate: falseRate, goal: falseGoal,
	},
	{
		name: "power",
		designs: []design{{title: "a stream: one primary comparison",
			args: runArgs("lab:native?rate=1Gbit/s", "lab:native?rate=950Mbit/s", "pod-pod/other/tcp-stream")}},
		n: 50, page: "evidence/power.md",
		title: "How often a link that is 5 % slower is found, in the lab",
		head: `Experiments in the lab with a known truth: the second target's underlay has 950 Mbit/s where the first's
has 1 Gbit/s. A token bucket keeps such a rate so exactly that blocks hardly differ, which is an easy case:
with wider intervals less is found, and ` + "`plan --pilot`" + ` predicts how much. The experiments are
as ` + "`run`" + ` makes them by default (looks at 8, 11, 15, 21 and 30 blocks, alpha 0.05, delta 2 %), but with runs
of 200 ms.
`,
		found: comparison.worse, rate: slowerRate, goal: slowerGoal,
	},
	{
		name: "power-latency",
		designs: []design{
			{title: "an underlay with 500 µs of delay, and 35 µs more: one primary comparison", seeds: 20,
				args: runArgs("lab:native?delay=500us", "lab:native?delay=535us", "pod-pod/other/tcp-rr")},
			{title: "an underlay with 1 ms of delay, and 60 µs more: one primary comparison",
				args: runArgs("lab:native?delay=1ms", "lab:native?delay=1060us", "pod-pod/other/tcp-rr")},
		},
		n: 40, page: "evidence/power-latency.md",
		title: "How often requests that take 5 % longer are found, in the lab",
		head: `Experiments in the lab with a known truth: the second target's underlay delays each round trip by more than the
first's, by about 5 % of what a request takes in all. A process carries the packets, and the scheduler
decides when it runs, so that requests differ from block to block without any help. The experiments are as
` + "`run`" + ` makes them by default (looks at 8, 11, 15, 21 and 30 blocks, alpha 0.05, delta 2 %), but with runs of
200 ms.
`,
		found: comparison.worse, rate: slowerRate, goal: slowerGoal,
	},
	{
		name: "power-cluster",
		designs: []design{{title: "a stream: one primary comparison", args: onClusterUntil11(
			onCluster+"?client-node=node-1&server-node=node-2&label=1 Gbit/s",
			onCluster+"?client-node=node-3&server-node=node-4&label=950 Mbit/s", "pod-pod/other/tcp-stream")}},
		n: 20, cluster: true, page: "evidence/power-cluster.md",
		title: "How often a link that is 5 % slower is found, on a cluster",
		head: `Experiments with a known truth on a [test cluster](../../test/cluster) with four nodes, all on one machine: the
links of two of them have 950 Mbit/s, those of the two others 1 Gbit/s, by token buckets, and each pair is
a target. The experiments are as ` + "`run`" + ` makes them by default (alpha 0.05, delta 2 %), but with runs of
200 ms and looks at 8 and 11 blocks alone. There is no such page about requests: it would take links with
a delay, which test clusters do not have.
`,
		found: comparison.worse, rate: slowerRate, goal: slowerGoal,
	},
}

// runArgs returns arguments of run for an experiment with two targets, in which all cases are primary.
func runArgs(baseline, other string, cases ...string) []string {
	args := []string{"--target", baseline, "--target", other, "--suite", "network:quick"}
	for _, c := range cases {
		args = append(args, "--case", c)
	}
	return append(args, "--primary", "*", "--duration", "200ms")
}

// onClusterUntil11 returns arguments of run for an experiment with one primary comparison on a cluster, where blocks
// take several seconds, so that it ends after 11 of them.
func onClusterUntil11(baseline, other, name string) []string {
	return append(runArgs(baseline, other, name), "--looks", "8,11", "--yes")
}

// An experiment is a line of the log.
type experiment struct {
	Seed        uint64       `json:"seed"`
	Args        []string     `json:"args"`
	Version     string       `json:"version"`
	CPU         string       `json:"cpu,omitempty"` // the only CPU used; empty: all
	Began       time.Time    `json:"began"`
	Seconds     float64      `json:"seconds"`
	Comparisons []comparison `json:"comparisons"` // primary ones
}

// A comparison has the logged fields of a row of knotmeter/comparison/v1.
type comparison struct {
	Case      string      `json:"case"`
	Metric    string      `json:"metric"`
	Role      string      `json:"role"`
	Blocks    int         `json:"blocks"`
	Change    float64     `json:"change"`
	CI        [2]*float64 `json:"ci"` // null: unbounded
	Verdict   string      `json:"verdict"`
	Direction string      `json:"direction"`
}

func (c comparison) different() bool { return c.Verdict == "different" }
func (c comparison) worse() bool     { return c.different() && c.Direction == "worse" }

// width returns the width of the interval as a fraction; infinite if an end is missing.
func (c comparison) width() float64 {
	if c.CI[0] == nil || c.CI[1] == nil {
		return math.Inf(1)
	}
	return *c.CI[1] - *c.CI[0]
}

// excludesZero reports whether the interval excludes 0, the true change in an A/A experiment, whatever the verdict.
func (c comparison) excludesZero() bool {
	return c.CI[0] != nil && *c.CI[0] > 0 || c.CI[1] != nil && *c.CI[1] < 0
}

// checkLog returns an error if the log has experiments with other arguments.
func (s study) checkLog(done []experiment) error {
	for _, x := range done {
		if !slices.Equal(x.Args, s.designOf(x.Seed).args) {
			return fmt.Errorf("experiment %d is of another study (%s); remove the log to begin anew",
				x.Seed, strings.Join(x.Args, " "))
		}
	}
	return nil
}

// measure runs one experiment, on a single CPU if cpu is not empty, and removes its results.
func (s study) measure(ctx context.Context, binary, cpu string, seed uint64) (experiment, error) {
	x := experiment{Seed: seed, Args: s.designOf(seed).args, CPU: cpu, Began: time.Now().UTC().Truncate(time.Second)}
	dir, err := os.MkdirTemp("", "knotmeter-rates")
	if err != nil {
		return x, err
	}
	defer os.RemoveAll(dir)
	args := slices.Concat([]string{"run"}, x.Args, []string{"--seed", strconv.FormatUint(seed, 10),
		"--progress", "none", "-o", "json", "--out", filepath.Join(dir, "results")})
	if cpu != "" {
		// Experiments on other CPUs run at the same time on purpose.
		binary, args = "taskset", slices.Concat([]string{"-c", cpu, binary}, args, []string{"--share"})
	}
	out, err := output(knotmeter(ctx, binary, args...))
	if err != nil && !(exitStatus(err) == runFailed && len(out) > 0) {
		return x, err
	}
	x.Seconds = float64(time.Since(x.Began).Round(time.Second) / time.Second)
	x.Comparisons, err = primaries(out)
	return x, err
}

// runFailed is the exit status of the program if a case could not be measured completely, such as on a busy machine.
// Its runs are compared and counted all the same, since omitting such experiments would bias the rates.
const runFailed = 2

// exitStatus returns the exit status of a failed command; -1 after a signal, and 0 if it did not start.
func exitStatus(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

// primaries returns the primary rows of a comparison in JSON, at least one.
func primaries(text []byte) ([]comparison, error) {
	var document struct{ Comparisons []comparison }
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("the comparison: %w", err)
	}
	rows := slices.DeleteFunc(document.Comparisons, func(c comparison) bool { return c.Role != "primary" })
	if len(rows) == 0 {
		return nil, errors.New("the comparison has no primary row")
	}
	return rows, nil
}
