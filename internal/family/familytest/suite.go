// Package familytest tests that all tools keep the same contract: it has a conformance suite that every tool passes on
// a pair of hosts, and a model of a tool for the tests of packages that use tools.
package familytest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets/targettest"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// runTimeout is the time after which a run counts as hanging. It is not a requirement on speed.
const runTimeout = 60 * time.Second

// A Config describes the tool to test, and how.
type Config struct {
	Tool family.Tool
	// Pair creates two hosts that reach each other, or one alone, for a tool of storage with a volume. It removes them
	// with t.Cleanup.
	Pair func(t *testing.T) host.Pair
	// Workloads lists the workloads to run; nil means every kind of the family network with its defaults.
	Workloads []family.Workload
	Times     family.Times // zero: 300 ms after 50 ms of warm-up
	// Running lists what is running on the hosts of the last pair. A run must leave it unchanged.
	Running func(t *testing.T) []string
}

// Suite runs the conformance suite. It skips workloads that the pair does not support, such as when the tool is not
// installed, with the tool's reason.
func Suite(t *testing.T, c Config) {
	if c.Workloads == nil {
		for _, k := range netload.Kinds() {
			c.Workloads = append(c.Workloads, Network(t, netload.Spec{Kind: k}))
		}
	}
	if c.Times == (family.Times{}) {
		c.Times = family.Times{Warmup: 50 * time.Millisecond, Window: 300 * time.Millisecond}
	}
	t.Run("Name", func(t *testing.T) { testName(t, c) })
	t.Run("Supports", func(t *testing.T) { testSupports(t, c) })
	for _, w := range c.Workloads {
		t.Run("Run/"+w.Traits().Kind, func(t *testing.T) { testRun(t, c, w) })
		t.Run("Cancel/"+w.Traits().Kind, func(t *testing.T) { testCancel(t, c, w) })
		t.Run("Gate/"+w.Traits().Kind, func(t *testing.T) { testGate(t, c, w) })
	}
}

// Network returns a workload between pods on different nodes.
func Network(t *testing.T, s netload.Spec) network.Workload {
	t.Helper()
	s, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	return network.Workload{Path: result.PodPodOther, Spec: s}
}

// unknown is a workload that belongs to no family.
type unknown struct{}

func (unknown) String() string { return "nowhere/no-such-workload" }

func (unknown) Traits() family.Traits {
	return family.Traits{Path: "nowhere", Kind: "no-such-workload"}
}

func testName(t *testing.T, c Config) {
	if !reflect.ValueOf(c.Tool).Comparable() {
		t.Errorf("%T cannot be compared with ==", c.Tool)
	}
	name := c.Tool.Name()
	if name == "" ||
		strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", r)
		}) {
		t.Errorf("the name %q is not letters, digits and dashes", name)
	}
	if c.Tool.Name() != name {
		t.Error("the name changes")
	}
}

func testSupports(t *testing.T, c Config) {
	supported := 0
	for _, w := range c.Workloads {
		err := c.Tool.Supports(w)
		if err == nil {
			supported++
		} else {
			targettest.CheckNotSupported(t, w.String(), err)
		}
		if again := c.Tool.Supports(w); (again == nil) != (err == nil) || err != nil && again.Error() != err.Error() {
			t.Errorf("Supports(%s) is not pure: %v, then %v", w, err, again)
		}
	}
	if supported == 0 {
		t.Error("the tool supports none of the workloads")
	}
	targettest.CheckNotSupported(t, unknown{}.String(), c.Tool.Supports(unknown{}))
}

// withRunTimeout returns the test's context with [runTimeout].
func withRunTimeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	t.Cleanup(cancel)
	return ctx
}

// pair creates hosts, or skips the test if the tool does not support w.
func pair(t *testing.T, c Config, w family.Workload) host.Pair {
	t.Helper()
	if err := c.Tool.Supports(w); err != nil {
		t.Skip(err)
	}
	return c.Pair(t)
}

func testRun(t *testing.T, c Config, w family.Workload) {
	p := pair(t, c, w)
	before := c.Running(t)
	m, err := c.Tool.Run(withRunTimeout(t), p, w, c.Times)
	if after := c.Running(t); !slices.Equal(before, after) {
		t.Errorf("still running: %v, before %v", after, before)
	}
	if errors.Is(err, result.ErrNotSupported) {
		targettest.CheckNotSupported(t, w.String(), err)
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range append(Check(w, m), Unlisted(c.Tool.Metrics(w), m)...) {
		t.Error(problem)
	}
	if len(m.Invalid) > 0 {
		t.Logf("the run is invalid: %v", m.Invalid)
	}
}

func testCancel(t *testing.T, c Config, w family.Workload) {
	p := pair(t, c, w)
	long := family.Times{Warmup: c.Times.Warmup, Window: 10 * time.Minute}
	before := c.Running(t)
	for _, moment := range []time.Duration{0, 5 * time.Millisecond, 200 * time.Millisecond} {
		ctx, cancel := context.WithCancel(withRunTimeout(t))
		timer := time.AfterFunc(moment, cancel)
		if moment == 0 {
			cancel()
		}
		_, err := c.Tool.Run(ctx, p, w, long)
		timer.Stop()
		cancel()
		if errors.Is(err, result.ErrNotSupported) {
			t.Skip(err)
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %v: %v is not context.Canceled", moment, err)
		}
		if after := c.Running(t); !slices.Equal(before, after) {
			t.Errorf("still running after a cancel at %v: %v, before %v", moment, after, before)
		}
	}
}

// testGate runs w with a port on which nothing listens, or with a volume that does not exist. The result may be an
// error or an invalid measurement, but not a valid one. Workloads that need neither are skipped.
func testGate(t *testing.T, c Config, w family.Workload) {
	p := pair(t, c, w)
	if p.Server == nil && p.Volume.Path == "" {
		t.Skip("nothing that it needs can be missing")
	}
	before := c.Running(t)
	p.Dial = netip.AddrPortFrom(p.Dial.Addr(), p.Dial.Port()+1)
	if p.Volume.Path != "" {
		p.Volume.Path += "-not-there"
	}
	m, err := c.Tool.Run(withRunTimeout(t), p, w, c.Times)
	if err == nil && len(m.Invalid) == 0 {
		t.Errorf("a client without a server or volume gave a valid measurement: %+v", m.Values)
	}
	if after := c.Running(t); !slices.Equal(before, after) {
		t.Errorf("still running after a failed run: %v, before %v", after, before)
	}
}

// Check returns what is wrong with a measurement of w, by the rules that hold for all tools.
func Check(w family.Workload, m result.Measurement) []string {
	var problems []string
	note := func(format string, a ...any) { problems = append(problems, fmt.Sprintf(format, a...)) }
	checkValues(w, m, note)
	checkDistributions(m, note)
	checkRaw(m, note)
	for _, f := range m.Facts {
		if f.Name == "" || f.Value == "" {
			note("fact %q has value %q; what cannot be found out is %q", f.Name, f.Value, result.Unknown)
		}
	}
	for _, w := range append(slices.Clone(m.Invalid), m.Warnings...) {
		if w.Code == "" || w.Text == "" || strings.HasSuffix(w.Text, ".") {
			note("%+v has no code, or is not a sentence without full stop", w)
		}
	}
	if m.Window < 0 || math.IsNaN(m.Window) || math.IsInf(m.Window, 0) {
		note("the window is %g s", m.Window)
	}
	return problems
}

// Unlisted returns a problem for each value of a measurement whose metric the tool does not list, or lists with another
// unit or direction.
func Unlisted(listed []metric.Metric, m result.Measurement) []string {
	var problems []string
	for _, v := range m.Values {
		same := func(m metric.Metric) bool { return m.Name == v.Metric && m.Unit == v.Unit && m.Better == v.Better }
		if !slices.ContainsFunc(listed, same) {
			problems = append(problems, fmt.Sprintf("%s in %s, better %q, is not among the tool's metrics",
				v.Metric, v.Unit, v.Better))
		}
	}
	return problems
}

func checkValues(w family.Workload, m result.Measurement, note func(string, ...any)) {
	units := []unit.Unit{unit.BitPerSecond, unit.BytePerSecond, unit.Second, unit.PerSecond,
		unit.Byte, unit.Ratio, unit.Count, unit.SecondPerGB, unit.SecondPerOp}
	seen := map[string]result.Value{}
	for _, v := range m.Values {
		if _, twice := seen[v.Metric]; twice || v.Metric == "" {
			note("metric %q is empty or there twice", v.Metric)
		}
		seen[v.Metric] = v
		if !slices.Contains(units, v.Unit) {
			note("%s is in %q, which is not a base unit", v.Metric, v.Unit)
		}
		if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) || v.Number < 0 {
			note("%s is %g", v.Metric, v.Number)
		}
	}
	if len(m.Invalid) > 0 {
		return
	}
	want := metric.Named(w.Traits().Metric)
	v, ok := seen[w.Traits().Metric]
	switch {
	case !ok:
		note("there is no %s, which verdicts on %s are about", w.Traits().Metric, w)
	case v.Number <= 0:
		note("%s is %g", v.Metric, v.Number)
	case v.Unit != want.Unit || v.Better != want.Better:
		note("%s is in %s and better %q", v.Metric, v.Unit, v.Better)
	}
}

func checkDistributions(m result.Measurement, note func(string, ...any)) {
	for _, h := range m.Histograms {
		decoded, err := hdrhistogram.Decode([]byte(h.Encoded))
		switch {
		case err != nil:
			note("histogram %s: %v", h.Name, err)
		case decoded.TotalCount() != h.Count:
			note("histogram %s holds %d and says %d", h.Name, decoded.TotalCount(), h.Count)
		}
		if h.Unit != "ns" || h.Name == "" || strings.ContainsAny(h.Name, "/\\") {
			note("histogram %q is in %q", h.Name, h.Unit)
		}
	}
	for _, s := range m.Series {
		if s.Name == "" || !(s.Step > 0) || len(s.Values) == 0 {
			note("series %q has %d values of %g s", s.Name, len(s.Values), s.Step)
		}
		for _, v := range s.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				note("series %s has %g", s.Name, v)
				break
			}
		}
	}
}

func checkRaw(m result.Measurement, note func(string, ...any)) {
	commands := false
	names := map[string]bool{}
	for _, f := range m.Raw {
		if f.Name == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, "/\\ :") || names[f.Name] {
			note("raw file %q is not a plain name, or there twice", f.Name)
		}
		names[f.Name] = true
		commands = commands || strings.Contains(f.Name, "command") && len(f.Data) > 0
	}
	if !commands {
		note("no raw file named like commands holds the exact commands")
	}
}
