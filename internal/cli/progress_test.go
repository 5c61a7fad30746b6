package cli

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// events returns the events of a short experiment, with at least one of each kind.
func events() []runner.Event {
	value := &result.Value{Metric: "p50", Unit: unit.Second, Number: 45.2e-6}
	return []runner.Event{
		{Kind: runner.Planned, Blocks: 2, Runs: 4, Remaining: 5},
		{Kind: runner.NotMeasured, Target: "lab:macvlan", Case: "*", Reason: "this kernel has no macvlan"},
		{Kind: runner.BlockStarted, Block: 1, Blocks: 2, Runs: 4, Remaining: 5},
		{Kind: runner.RunStarted, Case: "pod-pod/other/tcp-rr", Target: "lab:native", Block: 1, Blocks: 2, Runs: 4},
		{Kind: runner.RunDone, Case: "pod-pod/other/tcp-rr", Target: "lab:native", Block: 1,
			Blocks: 2, Done: 1, Runs: 4, Value: value, Elapsed: 61.2, Remaining: 3700},
		{Kind: runner.RunInvalid, Case: "pod-pod/other/tcp-rr", Target: "lab:vxlan",
			Block: 1, Blocks: 2, Done: 1, Runs: 4, Reason: "the window was short"},
		{Kind: runner.Finished, Blocks: 2, Done: 4, Runs: 4, Reason: "complete", Elapsed: 7},
	}
}

// newTTY returns the progress for a terminal of 80 columns and 24 lines.
func newTTY(out io.Writer) *ttyProgress {
	return &ttyProgress{out: out, width: 80, height: 24, last: map[string]string{}}
}

// TestProgressInTurn checks that visits are counted, the target of a switch is shown until the first run, and failures
// stay on the screen.
func TestProgressInTurn(t *testing.T) {
	var plain, tty strings.Builder
	p := &plainProgress{out: &plain, now: func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }}
	q := newTTY(&tty)
	shown := map[runner.Kind][]string{}
	for _, e := range []runner.Event{
		{Kind: runner.Planned, Remaining: 65, Visit: 1},
		{Kind: runner.SwitchStarted, Block: 2, Target: "calico", Done: 8, Elapsed: 20, Remaining: 50, Visit: 5},
		{Kind: runner.SwitchDone, Block: 2, Target: "calico", Done: 8, Elapsed: 40, Remaining: 50, Visit: 5},
		{Kind: runner.SwitchFailed, Block: 2, Target: "cilium", Done: 8, Reason: "exit status 1", Visit: 5},
		{Kind: runner.RestoreStarted, Done: 48, Reason: "./cni.sh default", Visit: 24},
	} {
		e.Blocks, e.Runs, e.Visits = 8, 48, 24
		p.show(e)
		q.show(e)
		shown[e.Kind] = emulator(tty.String())
	}
	want := `12:00:00 8 blocks, 48 runs, about 1:05, 24 visits
12:00:00 visit 5 of 24: switching to calico
12:00:00 switch to cilium failed, block 2: exit status 1
12:00:00 restoring the testbed: ./cni.sh default
`
	if plain.String() != want {
		t.Errorf("plain:\n%s", plain.String())
	}
	first := "visit 5 of 24  [###.................] 8/48  0:20 elapsed, 0:50 to go"
	got := shown[runner.SwitchStarted]
	if got[0] != first || !strings.HasPrefix(got[1], "visit 5 of 24: switching to calico") {
		t.Errorf("the emulator has %q", got)
	}
	if got = shown[runner.RestoreStarted]; got[0] != "switch to cilium failed, block 2: exit status 1" ||
		got[1] != "restoring the testbed: ./cni.sh default" {
		t.Errorf("at the end the emulator has %q", got)
	}
}

// TestProgressAtMost checks that the numbers of what is still to come are marked as upper limits if cases may end
// early.
func TestProgressAtMost(t *testing.T) {
	var plain, tty strings.Builder
	p := &plainProgress{out: &plain, now: func() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }}
	q := newTTY(&tty)
	for _, e := range []runner.Event{
		{Kind: runner.Planned, Blocks: 30, Runs: 60, Remaining: 65},
		{Kind: runner.BlockStarted, Block: 9, Blocks: 30, Done: 16, Runs: 60, Elapsed: 20, Remaining: 50},
		{Kind: runner.CaseDecided, Case: "pod-pod/other/tcp-rr", Block: 11, Blocks: 30, Done: 22, Runs: 22},
		{Kind: runner.Finished, Blocks: 30, Done: 22, Runs: 22, Reason: "decided", Elapsed: 25},
	} {
		e.AtMost = true
		p.show(e)
		q.show(e)
		if lines := emulator(tty.String()); e.Kind == runner.BlockStarted &&
			lines[0] != "block 9 of ≤ 30  [#####...............] 16/60  0:20 elapsed, ≤ 0:50 to go" {
			t.Errorf("the emulator has %q", lines)
		}
	}
	want := `12:00:00 at most 30 blocks, 60 runs, about 1:05
12:00:00 block 9 of at most 30: 16 of 60 runs done, 0:20 elapsed, at most 0:50 to go
12:00:00 decided: pod-pod/other/tcp-rr, after 11 of at most 30 blocks
12:00:00 decided after 0:25
`
	if plain.String() != want {
		t.Errorf("got\n%swant\n%s", plain.String(), want)
	}
	if lines := emulator(tty.String()); lines[0] != "decided: pod-pod/other/tcp-rr, after 11 of at most 30 blocks" {
		t.Errorf("at the end the screen has %q", lines)
	}
}

func TestPlainProgress(t *testing.T) {
	var out strings.Builder
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	p := &plainProgress{out: &out, now: func() time.Time { return noon }}
	for _, e := range events() {
		p.show(e)
	}
	want := `12:00:00 2 blocks, 4 runs, about 0:05
12:00:00 not measured: * on lab:macvlan: this kernel has no macvlan
12:00:00 block 1 of 2: 0 of 4 runs done, 0:00 elapsed, 0:05 to go
12:00:00 block 1  pod-pod/other/tcp-rr  lab:vxlan  invalid: the window was short
12:00:00 complete after 0:07
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestTTYProgress interprets the output with a terminal emulator and checks the lines that remain.
func TestTTYProgress(t *testing.T) {
	var out strings.Builder
	p := newTTY(&out)
	all := events()
	for _, e := range all[:5] {
		p.show(e)
	}
	lines := emulator(out.String())
	if n := len(lines); n != 3 {
		t.Fatalf("the emulator has %d lines, want 3: %q", n, lines)
	}
	if want := "not measured: * on lab:macvlan: this kernel has no macvlan"; lines[0] != want {
		t.Errorf("got %q, want %q", lines[0], want)
	}
	if want := "block 1 of 2  [#####...............] 1/4  1:01 elapsed, 1:01:40 to go"; lines[1] != want {
		t.Errorf("got %q, want %q", lines[1], want)
	}
	if want := "pod-pod/other/tcp-rr  lab:native 45.2 µs"; lines[2] != want {
		t.Errorf("got %q, want %q", lines[2], want)
	}
	for _, e := range all[5:] {
		p.show(e)
	}
	lines = emulator(out.String())
	if want := "invalid: pod-pod/other/tcp-rr on lab:vxlan, block 1: the window was short"; len(lines) != 3 ||
		lines[1] != want || lines[2] != "" {
		t.Errorf("at the end the screen has %q", lines)
	}
}

func TestTTYProgressStaysWithinTheTerminal(t *testing.T) {
	var out strings.Builder
	p := newTTY(&out)
	e := events()[4]
	for _, label := range []string{"a", "b", "c", "d", "e"} {
		e.Target = "lab:vxlan?label=" + strings.Repeat(label, 30)
		p.show(e)
	}
	for _, line := range emulator(out.String()) {
		if n := len([]rune(line)); n >= 80 {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
}

// TestTTYProgressHasTheMatrix checks that after each block the matrix with the decided cases stands above the lines
// that are updated, and that it is left out if it is too high for the terminal.
func TestTTYProgressHasTheMatrix(t *testing.T) {
	var out strings.Builder
	p := newTTY(&out)
	e := result.Experiment{Baseline: "lab:native", Targets: []result.Target{{Name: "lab:native"}, {Name: "lab:vxlan"}},
		Cases:  []result.Case{{Name: "a/rr", Role: result.Primary, Metric: "p50"}},
		Design: result.Design{Blocks: 30, Looks: []int{8, 30}, Alpha: 0.05, Delta: 0.02}}
	var runs []result.Run
	for block := 1; block <= 8; block++ {
		for i, target := range e.Targets {
			runs = append(runs, result.Run{ID: target.Name + strconv.Itoa(block), Case: "a/rr", Target: target.Name,
				Block: block, Attempt: 1, Window: 1, Values: []result.Value{{Metric: "p50", Unit: unit.Second, Better: metric.Lower,
					Number: float64(i+2) * 1e-5 * (1 + float64(block)/1000)}}})
		}
	}
	going := []string{"a/rr"}
	decide := progress{p.show, p.fill}.withBoard(e, func(result.Experiment, int, []result.Run) []string { return going })
	p.show(runner.Event{Kind: runner.BlockStarted, Block: 1, Blocks: 30})
	decide(e, 7, runs[:14])
	p.show(runner.Event{Kind: runner.BlockStarted, Block: 8, Blocks: 30})
	if text := strings.Join(emulator(out.String()), "\n"); !strings.Contains(text, "~ +50.0 %") ||
		!strings.Contains(text, " undecided") || strings.Count(text, "block ") != 1 {
		t.Errorf("after 7 blocks the screen has\n%s", text)
	}
	going = nil
	decide(e, 8, runs)
	p.show(runner.Event{Kind: runner.CaseDecided, Case: "a/rr", Block: 8, Blocks: 30})
	if text := strings.Join(emulator(out.String()), "\n"); !strings.Contains(text, "▼ +50.0 %") ||
		!strings.Contains(text, " worse") {
		t.Errorf("after the look the screen has\n%s", text)
	}
	p.height = 4
	decide(e, 8, runs)
	p.show(runner.Event{Kind: runner.BlockStarted, Block: 9, Blocks: 30})
	if text := strings.Join(emulator(out.String()), "\n"); strings.Contains(text, "worse") {
		t.Errorf("on a low terminal the screen has\n%s", text)
	}
}

// emulator returns the lines of a terminal after the output. It knows the control sequences that ttyProgress uses:
// erase the line, and move up one line.
func emulator(output string) []string {
	lines := []string{""}
	row := 0
	for len(output) > 0 {
		switch {
		case strings.HasPrefix(output, "\x1b[K"):
			lines[row], output = "", output[3:]
		case strings.HasPrefix(output, "\x1b[1A"):
			lines, output = lines[:row], output[4:]
			row--
		case output[0] == '\r':
			output = output[1:]
		case output[0] == '\n':
			lines, output = append(lines, ""), output[1:]
			row++
		default:
			end := strings.IndexAny(output, "\x1b\r\n")
			if end < 0 {
				end = len(output)
			}
			lines[row], output = lines[row]+output[:end], output[end:]
		}
	}
	return lines
}

func TestUnknownProgress(t *testing.T) {
	if _, err := newProgress("loud", Streams{}); err == nil || !strings.Contains(err.Error(), "--progress") {
		t.Errorf("got %v", err)
	}
}
