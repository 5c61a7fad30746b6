package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func TestParseGate(t *testing.T) {
	for _, c := range []struct {
		text string
		want Gate
	}{
		{"pod-pod/*/tcp-rr p99 <= +5%", Gate{Case: "pod-pod/*/tcp-rr",
			Metric: "p99", Most: true, Change: true, Limit: 0.05, Unit: unit.Ratio}},
		{"*/tcp-stream >= -3%", Gate{Case: "*/tcp-stream", Change: true, Limit: -0.03, Unit: unit.Ratio}},
		{"*/tcp-stream>=-3 %", Gate{Case: "*/tcp-stream", Change: true, Limit: -0.03, Unit: unit.Ratio}},
		{"pod-pod/other/tcp-rr p99 <= 2ms", Gate{Case: "pod-pod/other/tcp-rr",
			Metric: "p99", Most: true, Limit: 0.002, Unit: unit.Second}},
		{"pod-pod/other/tcp-rr p99 <= 0.002", Gate{Case: "pod-pod/other/tcp-rr",
			Metric: "p99", Most: true, Limit: 0.002, Unit: unit.Count}},
		{"*/tcp-rr:flows=4,request=64 <= -0%", Gate{Case: "*/tcp-rr:flows=4,request=64",
			Most: true, Change: true, Unit: unit.Ratio}},
		{"* throughput >= 9 Gbit/s on lab:vxlan*", Gate{Case: "*", Metric: "throughput",
			Limit: 9e9, Unit: unit.BitPerSecond, Target: "lab:vxlan*"}},
		{"*  >=  +1e1 percent  on my  second cluster", Gate{Case: "*",
			Change: true, Limit: 0.1, Unit: unit.Ratio, Target: "my second cluster"}},
	} {
		got, err := ParseGate(c.text)
		c.want.Text = strings.Join(strings.Fields(c.text), " ")
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got)\n%s", c.text, err, diff)
		}
	}
}

func TestBrokenGates(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "it has neither <= nor >=",
		"*/tcp-rr p99 < 5ms":        "it has neither <= nor >=",
		"<= +5%":                    "there is no case before the comparison",
		"*/tcp-rr p99 p50 <= +5%":   `"*/tcp-rr p99 p50" is more than a case and a metric`,
		"*/tcp-rr p99 <=":           "there is no limit after the comparison",
		"*/tcp-rr p99 <= on lab:x":  "there is no limit after the comparison",
		"*/tcp-rr p99 <= +5% on":    `no target follows "on"`,
		"*/tcp-rr p99 <= fast":      `the limit: not a value with a unit: "fast"`,
		"*/tcp-rr p99 <= 5 parsecs": `the limit: not a value with a unit: "5 parsecs" has an unknown unit`,
		"*/tcp-rr p99 <= 5%": `the limit "5%" may be a change or a share; a change has a sign (+5%), a share is a ` +
			`number from 0 to 1`,
		"*/tcp-rr p99 <= +5ms":       `the limit "+5ms" has a sign and is no percentage`,
		"*/tcp-rr p99 >= -100%":      `the limit "-100%" is a change by everything or more`,
		"*/tcp-rr p99 <= +5% <= +6%": `the limit: not a value with a unit: "+5% <= +6%"`,
	} {
		_, err := ParseGate(text)
		if !errors.Is(err, ErrGate) || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), gateForm) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func FuzzParseGate(f *testing.F) {
	for _, text := range []string{"pod-pod/*/tcp-rr p99 <= +5%", "*/tcp-stream >= -3%",
		"x p99 <= 2ms on lab:*", "* >= 9 Gbit/s", "<=>=", "a <= 5%", "a <= on on on", "a<=+5 percent"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseGate(text)
		if err != nil {
			if !errors.Is(err, ErrGate) {
				t.Errorf("%q: an error of another kind: %v", text, err)
			}
			return
		}
		if again, err := ParseGate(g.Text); err != nil || again != g {
			t.Errorf("%q: %+v, read from its own text %+v (%v)", text, g, again, err)
		}
		if g.Case == "" || g.Change && (g.Limit <= -1 || g.Unit != unit.Ratio) || g.allowedText(unit.Second) == "" {
			t.Errorf("%q: %+v", text, g)
		}
	})
}

// gated returns the outcome of gates in an experiment of two cases on three targets with 11 blocks: b is 10 % slower
// than a, c is alike; the second case reports only zeros.
func gated(t *testing.T, gates ...string) Comparison {
	t.Helper()
	w := newWorld(11, "a", "b", "c")
	w.addCase(rr, result.Primary, "p50")
	w.addCase("pod-pod/same/udp-rr", result.Exploratory, "loss")
	w.addCase(bound, result.Bound, "p50")
	w.addCase("never", result.Exploratory, "p50")
	w.e.NotMeasured = []result.NotMeasured{{Target: "*", Case: "never", Reason: "this kernel has no such thing"}}
	w.measure(rr, 1, 11, 0.004, 1.1, 1)
	w.measure(bound, 1, 11, 0.004, 1, 1)
	for i := range w.runs {
		w.runs[i].Values = append(w.runs[i].Values, result.Value{Metric: "rtt", Unit: unit.Second, Number: 3e-5})
	}
	for b := 1; b <= 11; b++ {
		for _, x := range w.e.Targets {
			w.add(b, "pod-pod/same/udp-rr", x.Name, result.Value{Metric: "loss", Unit: unit.Ratio, Better: metric.Lower})
		}
	}
	w.e.Gates = gates
	return compare(t, w, nil)
}

// TestGates checks a gate of every outcome.
func TestGates(t *testing.T) {
	c := gated(t,
		"pod-pod/*/tcp-rr <= +5%",
		"pod-pod/*/tcp-rr <= +5% on c",
		"*tcp-rr p50 <= +10%",
		"*tcp-rr p50 >= -0.5% on ?",
		"*tcp-rr p50 <= 105us",
		"*tcp-rr p50 >= 0.000108 on b",
		"*tcp-rr rtt <= 1 ms on a",
		"*tcp-rr p50 <= 1 Gbit/s on b",
		"*tcp-rr p99 <= +5% on b",
		"*udp-rr <= +5% on b",
		"*udp-rr <= 0.01 on c",
		"never <= +5% on b",
		"never <= 5ms on b",
		"node-node/* <= +5%",
		"*tcp-rr <= 1ms on nobody",
		"pod-pod/*/tcp-rr <= +5%",
	)
	goldenJSON(t, "gates.json", c.Gates)
	outcomes := map[string]Outcome{}
	for _, g := range c.Gates {
		outcomes[g.Gate+"|"+g.Target] = g.Outcome
		if g.Sentence == "" || !strings.Contains(g.Sentence, string(g.Outcome)) {
			t.Errorf("%s on %s is %s: %q", g.Gate, g.Target, g.Outcome, g.Sentence)
		}
	}
	want := map[string]Outcome{
		"pod-pod/*/tcp-rr <= +5%|b": Failed, "pod-pod/*/tcp-rr <= +5%|c": Passed, "pod-pod/*/tcp-rr <= +5% on c|c": Passed,
		"*tcp-rr p50 <= +10%|b": Open, "*tcp-rr p50 <= +10%|c": Passed,
		"*tcp-rr p50 >= -0.5% on ?|b": Passed, "*tcp-rr p50 >= -0.5% on ?|c": Open,
		"*tcp-rr p50 <= 105us|a": Passed, "*tcp-rr p50 <= 105us|b": Failed, "*tcp-rr p50 <= 105us|c": Passed,
		"*tcp-rr p50 >= 0.000108 on b|b": Passed,
		"*tcp-rr rtt <= 1 ms on a|a":     Passed, "*tcp-rr p50 <= 1 Gbit/s on b|b": Open,
		"*tcp-rr p99 <= +5% on b|b": Open, "*udp-rr <= +5% on b|b": Open, "*udp-rr <= 0.01 on c|c": Passed,
		"never <= +5% on b|b": Open, "never <= 5ms on b|b": Open,
		"node-node/* <= +5%|": Open, "*tcp-rr <= 1ms on nobody|": Open,
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	// A gate that matches nothing has no share of alpha, a duplicate gate has one share.
	if g := c.Gates[0]; g.Level != 1-0.05/18 {
		t.Errorf("level %v, want alpha shared by 18", g.Level)
	}
}

func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		gates []string
		want  Outcome
	}{
		{nil, Passed},
		{[]string{"*tcp-rr <= +50%"}, Passed},
		{[]string{"*tcp-rr <= +50%", "nothing <= +5%"}, Open},
		{[]string{"nothing <= +5%", "*tcp-rr <= +5%"}, Failed},
	} {
		if got := gated(t, c.gates...).Outcome(); got != c.want {
			t.Errorf("%q: %s, want %s", c.gates, got, c.want)
		}
	}
}

func TestGatesOfTwoDirectories(t *testing.T) {
	side := func(id string, blocks int, ratio float64) result.Results {
		w := newWorld(blocks, "a", "b")
		w.e.ID = id
		w.addCase(rr, result.Primary, "p50")
		w.measure(rr, 1, blocks, 0.004, 1)
		for i := range w.runs {
			w.runs[i].Values[0].Number *= ratio
			w.runs[i].Block = 1 + w.runs[i].Block*7%blocks // in an order without a drift
		}
		return result.Results{Experiment: w.e, Runs: w.runs}
	}
	old, now := side("old", 11, 1), side("new", 11, 1.1)
	now.Experiment.Gates = []string{"* <= +5%", "* <= +20% on b", "* <= 105us", "* p99 <= +5% on a"}
	c, err := compareSeveral(old, now)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range c.Gates {
		got = append(got, g.Gate+" | "+g.Target+" | "+string(g.Outcome))
	}
	want := []string{
		"* <= +5% | a (new) | failed", "* <= +5% | b (new) | failed", "* <= +20% on b | b (new) | passed",
		"* <= 105us | a (old) | passed", "* <= 105us | b (old) | passed",
		"* <= 105us | a (new) | failed", "* <= 105us | b (new) | failed",
		"* p99 <= +5% on a | a (new) | open",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	few := side("few", 5, 1.1)
	few.Experiment.Gates = []string{"* <= +5%"}
	if c, err = compareSeveral(old, few); err != nil || c.Outcome() != Open ||
		!strings.Contains(c.Gates[0].Sentence, "there are 11 and 5 runs") {
		t.Errorf("%v %+v", err, c.Gates)
	}
	few.Experiment.Gates = []string{"* <="}
	if _, err = compareSeveral(old, few); !errors.Is(err, ErrExperiment) || !errors.Is(err, ErrGate) {
		t.Errorf("error %v", err)
	}
}

// TestGateIsNotAveragedOverMistakes checks that gates leave out runs with audit errors.
func TestGateIsNotAveragedOverMistakes(t *testing.T) {
	w := newWorld(11, "a", "b")
	w.addCase(rr, result.Primary, "p50")
	w.measure(rr, 1, 11, 0.001, 1.1)
	for i := range w.runs {
		if r := &w.runs[i]; r.Block > 6 && r.Target == "b" {
			r.Values = []result.Value{p50(0)}
		}
	}
	w.e.Gates = []string{"* <= +5%", "* <= 1ms on b"}
	c := compare(t, w, nil)
	if !slices.Equal([]Outcome{c.Gates[0].Outcome, c.Gates[1].Outcome}, []Outcome{Open, Open}) ||
		!strings.Contains(c.Gates[1].Sentence, "6 runs") {
		t.Errorf("%+v", c.Gates)
	}
}

// medianGate returns the outcome of a gate on the median of runs with these values, in the order of their blocks.
func medianGate(t *testing.T, values ...float64) Gated {
	t.Helper()
	w := newWorld(len(values), "lab:native")
	w.addCase(rr, result.Primary, "p50")
	for i, v := range values {
		w.add(i+1, rr, "lab:native", p50(v))
	}
	w.e.Gates = []string{"* <= 1ms"}
	return compare(t, w, nil).Gates[0]
}

// TestGateOfWhatDrifts checks that a gate on a median with drift from block to block is open, because no interval
// covers it. Five ascending blocks are not drift yet, but too few for an interval.
func TestGateOfWhatDrifts(t *testing.T) {
	rising := []float64{30e-6, 40e-6, 50e-6, 60e-6, 70e-6, 80e-6, 90e-6, 100e-6}
	for _, n := range []int{6, 8} {
		if g := medianGate(t, rising[:n]...); g.Outcome != Open || !strings.Contains(g.Sentence, "drift") {
			t.Errorf("%d blocks that rise: %s", n, g.Sentence)
		}
	}
	if g := medianGate(t, rising[:5]...); strings.Contains(g.Sentence, "drift") {
		t.Errorf("five blocks: %s", g.Sentence)
	}
	mixed := []float64{50e-6, 30e-6, 70e-6, 40e-6, 60e-6, 90e-6, 35e-6, 65e-6}
	if g := medianGate(t, mixed...); g.Outcome != Passed {
		t.Errorf("runs without order: %s", g.Sentence)
	}
}

// TestGateOfWhatIsSteady checks that steady targets are refused for drift in at most the share driftAlpha, however few
// their blocks are.
func TestGateOfWhatIsSteady(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{6, 30} {
		const times = 500
		refused := 0
		for range times {
			values := make([]float64, n)
			for i := range values {
				values[i] = 50e-6 * math.Exp(0.1*random.NormFloat64())
			}
			if strings.Contains(medianGate(t, values...).Sentence, "drift") {
				refused++
			}
		}
		// Three standard deviations of a share of 1 % are 1.3 %; a level of 5 % refuses more.
		if share := float64(refused) / times; share > 0.01+0.013 {
			t.Errorf("%d blocks: %.2f %% of the steady series are refused", n, 100*share)
		}
	}
}
