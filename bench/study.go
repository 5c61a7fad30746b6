package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A study is one kind of experiment, repeated with other seeds.
type study struct {
	name string
	// designs are what the experiments are of, in the order of their seeds.
	designs []design
	n       int    // experiments
	page    string // in docs/
	head    string // of the page: title and what is done
	// found says what counts in an experiment; rate names the share of experiments in which it did.
	found func(comparison) bool
	rate  string
	goal  string // what the rate should be
}

// A design is one command line, for so many seeds.
type design struct {
	title string
	seeds int      // 0: all that are left
	args  []string // of run, without seed and directory
}

// of is the design of the experiment with this seed, from 1.
func (s study) of(seed uint64) design {
	last := uint64(0)
	for _, d := range s.designs {
		if last += uint64(d.seeds); d.seeds == 0 || seed <= last {
			return d
		}
	}
	return s.designs[len(s.designs)-1]
}

var studies = []study{
	{
		name: "aa",
		designs: []design{
			{"requests, directly and through a Service: two primary comparisons", 80,
				comparing("lab:native", "lab:native?label=again", "pod-pod/other/tcp-rr", "pod-svc/other/tcp-rr")},
			{"a stream over an underlay of 1 Gbit/s: one primary comparison", 0,
				comparing("lab:native?rate=1Gbit/s", "lab:native?rate=1Gbit/s&label=again", "pod-pod/other/tcp-stream")},
		},
		n: 200, page: "evidence/false-positives.md",
		head: `# How often a difference is found where there is none

A/A experiments in the lab: the same target twice, under two names. Every ` + "`different`" + ` among the
primary comparisons is false. The experiments are as ` + "`run`" + ` makes them by default (looks at 8, 11, 15,
21 and 30 blocks, alpha 0.05 over all primary comparisons, delta 2 %), but with runs of 200 ms.
`,
		found: comparison.different, rate: "with a false `different`", goal: "at most alpha = 5 %",
	},
	{
		name: "power",
		designs: []design{{"a stream: one primary comparison", 0,
			comparing("lab:native?rate=1Gbit/s", "lab:native?rate=950Mbit/s", "pod-pod/other/tcp-stream")}},
		n: 50, page: "evidence/power.md",
		head: `# How often a slowdown of 5 % is found

Experiments in the lab with a known truth: the second target's underlay has 950 Mbit/s where the first's
has 1 Gbit/s. The experiments are as ` + "`run`" + ` makes them by default (looks at 8, 11, 15, 21 and 30 blocks,
alpha 0.05, delta 2 %), but with runs of 200 ms.
`,
		found: comparison.worse, rate: "with the verdict `different`, `worse`", goal: "at least 80 %",
	},
}

// comparing is the command line of an experiment with two targets, all of whose cases are primary.
func comparing(baseline, other string, cases ...string) []string {
	args := []string{"--target", baseline, "--target", other, "--suite", "network:quick"}
	for _, c := range cases {
		args = append(args, "--case", c)
	}
	return append(args, "--primary", "*", "--duration", "200ms")
}

// An experiment is a line of the log.
type experiment struct {
	Seed        uint64       `json:"seed"`
	Args        []string     `json:"args"`
	Version     string       `json:"version"`
	CPU         string       `json:"cpu,omitempty"` // that all of it ran on; else on all
	Began       time.Time    `json:"began"`
	Seconds     float64      `json:"seconds"`
	Comparisons []comparison `json:"comparisons"` // primary ones
}

// A comparison is what the log keeps of a row of knotmeter/comparison/v1.
type comparison struct {
	Case      string      `json:"case"`
	Metric    string      `json:"metric"`
	Role      string      `json:"role"`
	Blocks    int         `json:"blocks"`
	Change    float64     `json:"change"`
	CI        [2]*float64 `json:"ci"` // null: without end
	Verdict   string      `json:"verdict"`
	Direction string      `json:"direction"`
}

func (c comparison) different() bool { return c.Verdict == "different" }
func (c comparison) worse() bool     { return c.different() && c.Direction == "worse" }

// excludesZero says whether the interval misses the truth of an A/A experiment, whatever the verdict.
func (c comparison) excludesZero() bool {
	return c.CI[0] != nil && *c.CI[0] > 0 || c.CI[1] != nil && *c.CI[1] < 0
}

// owns returns an error if the log is of experiments with other arguments.
func (s study) owns(done []experiment) error {
	for _, x := range done {
		if !slices.Equal(x.Args, s.of(x.Seed).args) {
			return fmt.Errorf("experiment %d is of another study (%s); remove the log to begin anew",
				x.Seed, strings.Join(x.Args, " "))
		}
	}
	return nil
}

// measure carries out one experiment, on one CPU if it is named, and removes its results.
func (s study) measure(ctx context.Context, binary, cpu string, seed uint64) (experiment, error) {
	x := experiment{Seed: seed, Args: s.of(seed).args, CPU: cpu, Began: time.Now().UTC().Truncate(time.Second)}
	dir, err := os.MkdirTemp("", "knotmeter-rates")
	if err != nil {
		return x, err
	}
	defer os.RemoveAll(dir)
	args := slices.Concat([]string{"run"}, x.Args, []string{"--seed", strconv.FormatUint(seed, 10),
		"--progress", "none", "-o", "json", "--out", filepath.Join(dir, "results")})
	if cpu != "" {
		// Those on other CPUs run at the same time, which is meant.
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

// runFailed is the exit status of the program when not everything could be measured: where the machine was so busy
// that a case was given up, what was measured of it is compared all the same, and counts here, since leaving such
// experiments out would choose among them.
const runFailed = 2

// exitStatus is that of a command that failed; 0 if it did not end by itself.
func exitStatus(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

// primaries reads the primary rows of a comparison.
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
