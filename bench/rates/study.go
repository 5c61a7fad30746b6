package rates

import (
	"bytes"
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
	found func(experiment) bool
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

func studies() []study {
	return []study{
		{
			name: "aa",
			designs: []design{
				{"requests, directly and through a Service: two primary comparisons", 80, []string{
					"--target", "lab:native", "--target", "lab:native?label=again", "--suite", "network:quick",
					"--case", "pod-pod/other/tcp-rr", "--case", "pod-svc/other/tcp-rr", "--primary", "*", "--duration", "200ms",
				}},
				{"a stream over an underlay of 1 Gbit/s: one primary comparison", 0, []string{
					"--target", "lab:native?rate=1Gbit/s", "--target",
					"lab:native?rate=1Gbit/s&label=again", "--suite", "network:quick",
					"--case", "pod-pod/other/tcp-stream", "--primary", "*", "--duration", "200ms",
				}},
			},
			n: 200, page: "false-positives.md",
			head: "# How often a difference is found where there is none\n\n" +
				"A/A experiments in the lab: the same target twice, under two names. Every `different` among the\nprimary comparisons is false. " +
				"The experiments are as `run` makes them by default (looks at 8, 11, 15,\n21 and 30 blocks, alpha 0.05 over all primary comparisons, delta 2 %), but with runs of 200 ms.\n",
			found: func(x experiment) bool { return slices.ContainsFunc(x.Comparisons, comparison.different) },
			rate:  "with a false `different`", goal: "at most alpha = 5 %",
		},
		{
			name: "power",
			designs: []design{{"a stream: one primary comparison", 0, []string{
				"--target", "lab:native?rate=1Gbit/s", "--target", "lab:native?rate=950Mbit/s", "--suite", "network:quick",
				"--case", "pod-pod/other/tcp-stream", "--primary", "*", "--duration", "200ms",
			}}},
			n: 50, page: "power.md",
			head: "# How often a slowdown of 5 % is found\n\n" +
				"Experiments in the lab with a known truth: the second target's underlay has 950 Mbit/s where the first's\nhas 1 Gbit/s. " +
				"The experiments are as `run` makes them by default (looks at 8, 11, 15, 21 and 30 blocks,\nalpha 0.05, delta 2 %), but with runs of 200 ms.\n",
			found: func(x experiment) bool { return slices.ContainsFunc(x.Comparisons, comparison.worse) },
			rate:  "with the verdict `different`, `worse`", goal: "at least 80 %",
		},
	}
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

func has(done []experiment, seed uint64) bool {
	return slices.ContainsFunc(done, func(x experiment) bool { return x.Seed == seed })
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
	out, err := output(ctx, binary, args...)
	if err != nil {
		return x, err
	}
	x.Seconds = float64(time.Since(x.Began).Round(time.Second) / time.Second)
	x.Comparisons, err = primaries(out)
	return x, err
}

// primaries reads the primary rows of a comparison.
func primaries(text []byte) ([]comparison, error) {
	var document struct {
		Comparisons []comparison `json:"comparisons"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("the comparison: %w", err)
	}
	rows := slices.DeleteFunc(document.Comparisons, func(c comparison) bool { return c.Role != "primary" })
	if len(rows) == 0 {
		return nil, errors.New("the comparison has no primary row")
	}
	return rows, nil
}

func versionOf(ctx context.Context, binary string) (string, error) {
	out, err := output(ctx, binary, "version")
	return strings.TrimSpace(string(out)), err
}

// runFailed is the exit status of the program when not everything could be measured.
const runFailed = 2

func output(ctx context.Context, binary string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, binary, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // so that it removes what it made
	c.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	// Where the machine was so busy that a case was given up, what was measured of it is compared all the
	// same, and counts here: leaving such experiments out would choose among them.
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == runFailed && out.Len() > 0 {
		return out.Bytes(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", binary, strings.Join(args, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}
