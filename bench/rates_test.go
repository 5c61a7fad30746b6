package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/golden"
)

// example returns a log of three A/A experiments, one of which has a false verdict.
func example(s study) []experiment {
	lo, hi := -0.01, 0.012
	above := 0.001
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	row := func(verdict, direction string, blocks int, ci [2]*float64) comparison {
		return comparison{Case: "pod-pod/other/tcp-rr", Metric: "p50", Role: "primary",
			Blocks: blocks, Change: 0.004, CI: ci, Verdict: verdict, Direction: direction}
	}
	return []experiment{
		{Seed: 1, Args: s.designOf(1).args, Version: "v1", Began: began, Seconds: 20,
			Comparisons: []comparison{row("equivalent", "none", 8, [2]*float64{&lo, &hi})}},
		{Seed: 2, Args: s.designOf(1).args, Version: "v1", Began: began.Add(time.Minute), Seconds: 50,
			Comparisons: []comparison{row("different", "worse", 11, [2]*float64{&above, &hi})}},
		{Seed: 3, Args: s.designOf(1).args, Version: "v2", Began: began.Add(time.Hour), Seconds: 30,
			Comparisons: []comparison{row("undecided", "none", 30, [2]*float64{nil, nil})}},
	}
}

func TestDocument(t *testing.T) {
	for _, s := range studies {
		golden.Check(t, "testdata/"+s.name+".md", string(s.document(example(s))))
		if text := string(s.document(nil)); !strings.Contains(text, "None has been measured") {
			t.Errorf("without experiments: %s", text)
		}
	}
}

// TestDocumentNoise checks that the title has the width of each design's bounded intervals.
func TestDocumentNoise(t *testing.T) {
	lo, hi, end := -0.01, 0.02, 0.022
	aa := studyOf(t, "aa")
	of := func(seed uint64, ci [2]*float64) experiment {
		return experiment{Seed: seed, Args: aa.designOf(seed).args, Comparisons: []comparison{{CI: ci}}}
	}
	requests, stream, near := of(1, [2]*float64{&lo, &hi}), of(81, [2]*float64{&lo, &hi}), of(201, [2]*float64{&hi, &end})
	for want, done := range map[string][]experiment{
		"in the lab, with intervals 3.0 and 0.2 % wide": {requests, stream, near},
		"in the lab, with intervals 0.2 % wide":         {of(1, [2]*float64{&lo, nil}), stream, near},
		"in the lab":                                    {of(1, [2]*float64{}), stream},
	} {
		title, text, _ := strings.Cut(string(aa.document(done)), "\n")
		if title != "# How often a difference is found where there is none, "+want {
			t.Errorf("%q, want %q\n%s", title, want, text)
		}
	}
}

// TestQuietDoesNotCount checks that experiments that can hardly have a difference are shown, but not in the rate.
func TestQuietDoesNotCount(t *testing.T) {
	aa := studyOf(t, "aa")
	done := append(example(aa), experiment{Seed: 81, Args: aa.designOf(81).args, Comparisons: []comparison{{}}})
	text := string(aa.document(done))
	for _, want := range []string{"**1 of 3 (33.3 %", "| 4 of 320 planned; 3 count above |", "| 0 of 1 (0.0 %",
		"| 0 of 120 planned: not measured yet |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if only := string(aa.document(done[3:])); strings.Contains(only, "**") {
		t.Errorf("a rate of none that count:\n%s", only)
	}
}

// TestQuiet checks by the logs that designs of A/A studies are quiet if half a typical interval is at most a quarter of
// delta, and that no others are.
func TestQuiet(t *testing.T) {
	for _, s := range studies {
		done, err := readLog[experiment](filepath.Join("rates", s.name+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range s.designs {
			const delta = 2 // percent
			if width := typicalWidth(among([]design{d}, done)); s.sameTargets && width.N > 0 &&
				d.quiet != (width.Median/2 <= delta/4.0) {
				t.Errorf("%s, %s: quiet is %t, intervals are %.2f %% wide", s.name, d.title, d.quiet, width.Median)
			}
		}
	}
}

// TestPages checks that pages are those of their logs, and that there is none without a log.
func TestPages(t *testing.T) {
	for _, s := range studies {
		done, err := readLog[experiment](filepath.Join("rates", s.name+".ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		page := filepath.Join("..", "docs", s.page)
		if done != nil {
			golden.Check(t, page, string(s.document(done)))
		} else if _, err := os.Stat(page); err == nil {
			t.Errorf("%s has no log", page)
		}
	}
}

func studyOf(t *testing.T, name string) study {
	t.Helper()
	i := slices.IndexFunc(studies, func(s study) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no study %s", name)
	}
	return studies[i]
}

func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if done, err := readLog[experiment](path); done != nil || err != nil {
		t.Fatalf("no log: %v, %v", done, err)
	}
	s := studies[0]
	for _, x := range example(s) {
		if err := appendLog(path, x); err != nil {
			t.Fatal(err)
		}
	}
	// A crash in the middle of a line.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seed":4,"ar`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, nothing is torn any more
		done, err := readLog[experiment](path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(example(s), done); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	}
	if l := (&studyRun{n: 4, done: example(s)}); !slices.Equal(l.missing(), []uint64{4}) {
		t.Errorf("missing: %v, want 4 alone", l.missing())
	}
	if err := os.WriteFile(path, []byte("{}\nnonsense\n{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readLog[experiment](path); err == nil || !strings.Contains(err.Error(), path+":2:") {
		t.Errorf("a broken line: %v", err)
	}
}

func TestOwns(t *testing.T) {
	aa, power := studyOf(t, "aa"), studyOf(t, "power")
	if err := aa.checkLog(example(aa)); err != nil {
		t.Error(err)
	}
	if err := aa.checkLog(example(power)); err == nil {
		t.Error("a log of another study is taken for its own")
	}
}

func TestPrimaries(t *testing.T) {
	rows, err := primaries([]byte(`{"comparisons":[{"case":"b","role":"exploratory"},
		{"case":"a","role":"primary","ci":[null,0.1],"verdict":"undecided"}]}`))
	if err != nil || len(rows) != 1 || rows[0].Case != "a" ||
		rows[0].CI[0] != nil || *rows[0].CI[1] != 0.1 || rows[0].excludesZero() {
		t.Errorf("%+v, %v", rows, err)
	}
	for _, text := range []string{"", "[]", `{"comparisons":[]}`} {
		if _, err := primaries([]byte(text)); err == nil {
			t.Errorf("%q is taken for a comparison", text)
		}
	}
}

// TestMeasure runs a script as program: experiments in the log are not repeated, and two CPUs share the others.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	const script = `#!/bin/sh
echo '{"comparisons":[{"case":"c","role":"primary","verdict":"equivalent"}]}'
exit 2
`
	if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s := studies[0]
	l := &studyRun{
		study: s, n: 9, binary: binary, cpus: []string{"", "0"},
		log: filepath.Join(dir, "log"), page: filepath.Join(dir, "page"),
		version: "v1", done: example(s),
	}
	if err := l.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	added, err := readLog[experiment](l.log)
	if err != nil || len(added) != 6 || len(l.done) != 9 || len(l.missing()) != 0 {
		t.Errorf("%d added, %d in all, %v; want 6 and 9", len(added), len(l.done), err)
	}
	page, err := os.ReadFile(l.page)
	if err != nil || !strings.Contains(string(page), "| experiments | 9 of 320 planned |") {
		t.Errorf("%s, %v", page, err)
	}
	l.n, l.binary = 10, filepath.Join(dir, "nothing")
	if err := l.measure(t.Context()); err == nil || !strings.Contains(err.Error(), "experiment 10") {
		t.Errorf("without the program: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, args := range [][]string{{"-study", "bb"}, {"-n", "x"}, {"-study", "aa-cluster", "-cpus", "0,1"}} {
		if _, err := parseRates(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	o, err := parseRates([]string{"-study", "power"})
	if err != nil || o.n != 50 || o.log != "bench/rates/power.ndjson" || o.page != "docs/evidence/power.md" {
		t.Errorf("%+v, %v", o, err)
	}
}
