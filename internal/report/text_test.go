package report

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc/text"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
)

// textOf returns the text report, after a check of its lines.
func textOf(t *testing.T, in Input, options TextOptions) string {
	t.Helper()
	got := render(t, func(b *strings.Builder) error { return Text(b, in, options) })
	checkLines(t, got, options.terminal().Columns())
	return got
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// checkLines fails the test for lines that are wider than width or contain control characters. An argument of a command
// cannot be wrapped.
func checkLines(t *testing.T, got string, width int) {
	t.Helper()
	for i, l := range strings.Split(escapes.ReplaceAllString(got, ""), "\n") {
		if prose.Width(l) > width && !strings.HasPrefix(l, "      --") {
			t.Errorf("line %d has %d columns: %q", i+1, prose.Width(l), l)
		}
		if strings.TrimRight(l, " ") != l {
			t.Errorf("line %d ends in a space: %q", i+1, l)
		}
		if prose.Plain(l) != l {
			t.Errorf("line %d has a control character: %q", i+1, l)
		}
	}
}

func TestTextGolden(t *testing.T) {
	worse := row("lab:vxlan", 9.13, 6.41, -0.297, -0.33, -0.26, compare.Different, compare.WorseThan)
	same := row("lab:native (again)", 9.13, 9.12, -0.001, -0.008, 0.006, compare.Equivalent, compare.None)
	long := "lab:native?mtu=9000&rate=10Gbit&services=ebpf&nodes=4&label=a-name-that-nobody-would-want-to-type"
	tests := []struct {
		name string
		in   func() Input
	}{
		{"two-targets", func() Input {
			return input(bounded(worse, 9.41, 0.97, 0.68), latency(row("lab:vxlan", 0,
				0, 0.083, 0.07, 0.092, compare.Different, compare.WorseThan), 24.5, 26.6))
		}},
		{"three-targets", func() Input {
			in := input(worse, row("lab:vxlan+wireguard", 9.13, 2.17,
				-0.765, -0.78, -0.749, compare.Different, compare.WorseThan),
				exploratory(latency(row("lab:vxlan", 0, 0, 0.083, 0.07, 0.092, compare.Different, compare.WorseThan), 24.5, 26.6)),
				exploratory(latency(row("lab:vxlan+wireguard", 0, 0, -0.12, -0.15, -0.09, compare.Different, compare.BetterThan),
					24.5, 21.6)))
			in.Comparison.AlsoDiffers = map[string][]string{"lab:vxlan": {"mtu"},
				"lab:vxlan+wireguard": {"mtu", "cpu.governor (unknown)"}}
			in.Comparison.Differences = map[string][]compare.Difference{
				"lab:vxlan": {{Fact: "mtu", Baseline: "1500", Target: "1450"}},
				"lab:vxlan+wireguard": {{Fact: "mtu", Baseline: "1500", Target: "1370"},
					{Fact: "cpu.governor", Baseline: "powersave", Target: "unknown"}},
			}
			in.Comparison.Warnings = recorded("The machine's clock was set during the experiment.")
			return withRuns(in)
		}},
		{"a-a", func() Input { return input(same) }},
		{"undecided", func() Input {
			return input(warned(row("lab:vxlan", 9.13, 8.9, -0.021, -0.06, 0.013, compare.Undecided, compare.None),
				"The change varies widely from block to block: its standard deviation is 6.1 %.", "Its blocks trend."))
		}},
		{"unbounded", func() Input {
			return input(warned(row("lab:vxlan", 9.13, 6.4, -0.29, math.Inf(-1), math.Inf(1), compare.Undecided, compare.None),
				"3 blocks are too few for an interval at 95 %; it takes 6."))
		}},
		{"no-ratio", func() Input {
			r := warned(row("lab:vxlan", 9.13, 0, math.NaN(), math.Inf(-1), math.Inf(1), compare.Undecided, compare.None),
				"1 of 22 values is 0 and has no ratio.")
			r.Shift = &compare.Shift{Estimate: -9.1e9, CI: compare.Interval{Lo: -9.2e9, Hi: math.Inf(1)}}
			return input(r)
		}},
		{"not-measured", func() Input {
			in := input(worse)
			in.Comparison.NotMeasured = []result.NotMeasured{
				{Target: "lab:ipsec", Case: "*", Reason: "this kernel has no ESP (CONFIG_INET_ESP)"},
				{Target: "lab:ipip", Case: stream,
					Reason: "this kernel has no ipip (CONFIG_NET_IPIP), and eBPF is not allowed without root"},
			}
			return in
		}},
		{"nothing", func() Input { return input() }},
		{"one-target", func() Input { return oneTarget(t) }},
		{"unpaired", func() Input {
			in := input(worse)
			in.Comparison.Paired = false
			return in
		}},
		{"long-names", func() Input {
			r := row(long, 9.13, 6.41, -0.297, -0.33, -0.26, compare.Different, compare.WorseThan)
			r.Case = "pod-pod/other/tcp-stream:flows=16,size=16384,direction=both,offload=true,request=1024,response=65536"
			return input(warned(r, "One.", "Two.", "Three.", "Four."), warned(worse, "Three."))
		}},
		{"many-notes", func() Input {
			var rows []compare.Row
			for i := range 8 {
				r := warned(row("lab:vxlan", 9.13, 6.41, -0.297, -0.33, -0.26, compare.Different, compare.WorseThan),
					fmt.Sprintf("Note A of %d.", i), fmt.Sprintf("Note B of %d.", i), "A note of all.")
				r.Case = fmt.Sprintf("%s:flows=%d", stream, i+2)
				rows = append(rows, r)
			}
			return input(rows...)
		}},
		{"huge", func() Input {
			return input(row("lab:vxlan", 1e-6, 9e8, 1e12, 1e5, 1e17, compare.Different, compare.BetterThan),
				latency(row("lab:ipip", 0, 0, -0.999999, -1, -0.9999, compare.Different, compare.BetterThan), 1e9, 3e-3))
		}},
		{"unicode", func() Input {
			return input(row("本番クラスタ(東京)", 9.13, 6.41, -0.297, -0.33, -0.26, compare.Different, compare.WorseThan),
				row("naïve Zürich é", 9.13, 9.12, -0.001, -0.008, 0.006, compare.Equivalent, compare.None),
				row("\x1b[31mred\x1b[0m\tand\u202eevil", 9.13, 9.12, -0.001, -0.008, 0.006, compare.Equivalent, compare.None),
				row("本番クラスタの名前がとても長いので一行には収まりきらないことがあります本番クラスタの名前がとても長い", 9.13,
					9.12, 0.5, 0.4, 0.6, compare.Different, compare.BetterThan))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			golden.Check(t, "testdata/brief-"+tt.name+".txt", textOf(t, tt.in(), TextOptions{}))
			golden.Check(t, "testdata/text-"+tt.name+".txt", textOf(t, tt.in(), TextOptions{Verbose: true}))
			for _, width := range []int{1, text.MinWidth, 61, 72, 100} {
				textOf(t, tt.in(), TextOptions{Width: width}) // checks the lines
			}
		})
	}
}

// TestTextOfManyTargets checks that the answer about eight targets fits a screen, with a line for each target.
func TestTextOfManyTargets(t *testing.T) {
	plan := smallShape("lab:native", "lab:vxlan", "lab:bridge", "lab:geneve", "lab:ipip", "lab:native+wireguard",
		"lab:vxlan+wireguard", "lab:macvlan")
	plan.Workloads, plan.Blocks, plan.Design.AllPairs = []string{"tcp-stream", "tcp-rr", "udp-rr", "tcp-crr"}, 30, true
	in, err := manyInput(plan)
	if err != nil {
		t.Fatal(err)
	}
	brief := textOf(t, in, TextOptions{})
	golden.Check(t, "testdata/brief-many-targets.txt", brief)
	if lines := strings.Count(brief, "\n"); lines > 24 {
		t.Errorf("it takes %d lines", lines)
	}
	for _, width := range []int{text.MinWidth, 72, 100, 200} {
		if got := textOf(t, in, TextOptions{Width: width}); strings.Count(got, "vxlan+wireguard") > 1+4*60/width {
			t.Errorf("%d columns:\n%s", width, got)
		}
	}
}

// TestTextOfManyCases checks that three targets in six cases have a line for each case, with intervals if the terminal
// is wide enough.
func TestTextOfManyCases(t *testing.T) {
	plan := smallShape("lab:native", "lab:vxlan", "lab:native+wireguard")
	plan.Paths = []result.Path{"pod-pod/other", "pod-svc/other"}
	plan.Workloads, plan.Blocks, plan.Primary = []string{"tcp-stream", "tcp-rr", "tcp-crr"}, 30, "pod-"
	in, err := manyInput(plan)
	if err != nil {
		t.Fatal(err)
	}
	brief, wide := textOf(t, in, TextOptions{}), textOf(t, in, TextOptions{Width: 120})
	golden.Check(t, "testdata/brief-many-cases.txt", brief+wide)
	if lines := strings.Count(brief, "\n"); lines > 24 {
		t.Errorf("it takes %d lines", lines)
	}
	for l := range strings.Lines(brief) {
		if prose.Width(l) > prose.Columns+1 {
			t.Errorf("wider than a terminal: %s", l)
		}
	}
}

func TestTextOfABuiltExperiment(t *testing.T) {
	in := network(t)
	got := textOf(t, in, TextOptions{Verbose: true})
	for _, want := range []string{"EXPLORATORY", "~  +2.4 % [-3.7, +7.4]   undecided", "not measured",
		"CONFIG_INET_ESP", "INVALID RUNS", "% of the", in.Comparison.Scope[:40]} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
	in.Comparison.Warnings = nil // they take additional lines
	brief := textOf(t, in, TextOptions{})
	if lines := strings.Count(brief, "\n"); lines > 24 {
		t.Errorf("the brief answer takes %d lines:\n%s", lines, brief)
	}
	for _, r := range in.Comparison.Primary() {
		if !strings.Contains(brief, change(r.Change)) {
			t.Errorf("the brief answer lacks %s of %s:\n%s", change(r.Change), r.Case, brief)
		}
	}
}

func TestColourAddsNothingButColour(t *testing.T) {
	in := network(t)
	for _, verbose := range []bool{false, true} {
		plainText := textOf(t, in, TextOptions{Verbose: verbose})
		checkColours(t, plainText, textOf(t, in, TextOptions{Verbose: verbose, Colour: true}))
	}
}

func checkColours(t *testing.T, plainText, coloured string) {
	t.Helper()
	if plainText == coloured {
		t.Fatal("Colour has no effect")
	}
	// Trailing spaces are within an escape sequence in the coloured text.
	strip := func(s string) string {
		return regexp.MustCompile(` +\n`).ReplaceAllString(escapes.ReplaceAllString(s, ""), "\n")
	}
	if strip(coloured) != plainText {
		t.Error("without its escape sequences the coloured table is another")
	}
	if strings.Contains(plainText, "\x1b") {
		t.Error("there are escape sequences without Colour")
	}
}

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "µs": 2, "±2 %": 4,
		"é": 1, "東京": 4, "한글": 4, "🚢": 2, "▲▼∞": 3, "zero\u200dwidth": 9} {
		if got := prose.Width(s); got != want {
			t.Errorf("prose.Width(%q) = %d, want %d", s, got, want)
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("a line of words, 12 % of them long", 10)
	f.Add("東京東京東京 é 🚢🚢🚢", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 2 || n > 200 {
			return
		}
		s = prose.Plain(s)
		lines := prose.Wrap(s, n)
		for _, l := range lines {
			if prose.Width(l) > n {
				t.Errorf("prose.Wrap(%q, %d) has a line of %d columns: %q", s, n, prose.Width(l), l)
			}
		}
		join := func(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, "")), "") }
		if join(lines...) != join(s) {
			t.Errorf("prose.Wrap(%q, %d) = %q has lost something", s, n, lines)
		}
	})
}
