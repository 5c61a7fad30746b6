package native

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// window is the length of most measurements of a self-test, which takes well under a minute in all.
const window = 500 * time.Millisecond

// repeats is the number of measurements of each ceiling; their median is reported.
const repeats = 3

// A selftest opens targets for checks and reports their results.
type selftest struct {
	open   func(spec string) (targets.Target, error)
	report func(family.Check)
}

// Selftest checks the highest rates that the generator reaches here, the overhead of a run, and the accuracy with which
// it measures known rates, delays and losses.
func (*Tool) Selftest(
	ctx context.Context, open func(spec string) (targets.Target, error), report func(family.Check),
) (failed int, err error) {
	s := selftest{open, func(c family.Check) {
		if c.Expected != "" && !c.Passed {
			failed++
		}
		report(c)
	}}
	for _, step := range []func(context.Context) error{s.ceilings, s.rates, s.delays, s.losses} {
		if err := step(ctx); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// measure runs one workload from node to node on a lab target, and returns the value of a metric and the total
// duration.
func (s selftest) measure(ctx context.Context, lab string, w netload.Spec,
	of string) (value float64, took time.Duration, err error) {
	began := time.Now()
	t, err := s.open(lab)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	site, err := targets.OpenOne(ctx, t, targets.Placement{Path: result.NodeNode})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, site.Close(context.WithoutCancel(ctx))) }()
	if w, err = w.Resolved(); err != nil {
		return 0, 0, err
	}
	times := family.Times{Warmup: w.Warmup, Window: w.Duration}
	m, err := New().Run(ctx, site.Pair, network.Workload{Path: result.NodeNode, Spec: w}, times)
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(m.Values, func(v result.Value) bool { return v.Metric == of })
	if i < 0 {
		return 0, 0, fmt.Errorf("the measurement has no %s", of)
	}
	return m.Values[i].Number, time.Since(began), nil
}

// ceilings reports the rates that the generator reaches on the fastest path, and the overhead of a run.
func (s selftest) ceilings(ctx context.Context) error {
	var overheads []float64
	for _, c := range []struct {
		name, metric string
		spec         netload.Spec
	}{
		{"tcp-stream, one flow", metric.Throughput, netload.Spec{Kind: netload.TCPStream}},
		{"tcp-rr, round trip p50", metric.P50, netload.Spec{Kind: netload.TCPRR}},
		{"tcp-crr, connections", metric.Rate, netload.Spec{Kind: netload.TCPCRR}},
		{"udp-stream, 64 bytes, offered 1 M/s", metric.Rate, netload.Spec{Kind: netload.UDPStream, Size: 64, Rate: 1e6}},
	} {
		c.spec.Duration, c.spec.Warmup = window, window/5
		var seen []float64
		for range repeats {
			v, took, err := s.measure(ctx, "lab:host", c.spec, c.metric)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			seen = append(seen, v)
			overheads = append(overheads, (took - window - window/5).Seconds())
		}
		s.report(family.Check{Group: "ceiling", Name: c.name,
			Measured: unit.Format(stats.Median(seen), metric.Named(c.metric).Unit)})
	}
	s.report(family.Check{Group: "overhead", Name: "of a run besides warm-up and window",
		Measured: unit.Format(stats.Median(overheads), unit.Second) + " (with the start of a lab)"})
	return nil
}

// payloadShare returns the share of a link's rate that is TCP payload, at an MTU in bytes: each segment has 20 bytes of
// IPv4 header, 20 of TCP, 12 of its time-stamp option, and 14 of Ethernet.
func payloadShare(mtu int) float64 { return float64(mtu-52) / float64(mtu+14) }

// rates measures links whose rate is known.
func (s selftest) rates(ctx context.Context) error {
	for _, rate := range []float64{100e6, 1e9} {
		text := unit.Format(rate, unit.BitPerSecond)
		saw, _, err := s.measure(ctx, fmt.Sprintf("lab:host?rate=%.0f", rate),
			netload.Spec{Kind: netload.TCPStream, Duration: 2 * time.Second, Warmup: window}, metric.Throughput)
		if err != nil {
			return fmt.Errorf("a link of %s: %w", text, err)
		}
		s.compare(family.Check{Group: "accuracy", Name: "tcp-stream on a link of " + text},
			saw, rate*payloadShare(1500), 0.01, unit.BitPerSecond)
	}
	return nil
}

// compare reports a check of a measured value against a truth with a relative tolerance.
func (s selftest) compare(c family.Check, saw, truth, tolerance float64, u unit.Unit) {
	off := saw/truth - 1
	c.Measured = fmt.Sprintf("%s (%s)", unit.Format(saw, u), unit.FormatChange(off))
	c.Expected = fmt.Sprintf("%s ± %.0f %%", unit.Format(truth, u), 100*tolerance)
	c.Passed = math.Abs(off) <= tolerance
	s.report(c)
}

// knownDelay is the delay that the lab adds to each round trip.
const knownDelay = 10 * time.Millisecond

// delays measures by how much a known delay raises the round trip, compared with the same path and a delay of 0.
func (s selftest) delays(ctx context.Context) error {
	var p50 [2]float64
	for i, delay := range []time.Duration{0, knownDelay} {
		var err error
		p50[i], _, err = s.measure(ctx, fmt.Sprintf("lab:host?delay=%v", delay),
			netload.Spec{Kind: netload.TCPRR, Duration: 2 * window, Warmup: window / 5}, metric.P50)
		if s.skipped("tcp-rr over a known delay", err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("a delay of %v: %w", delay, err)
		}
	}
	s.compare(family.Check{Group: "accuracy", Name: fmt.Sprintf("tcp-rr raised by a delay of %v", knownDelay)},
		p50[1]-p50[0], knownDelay.Seconds(), 0.05, unit.Second)
	return nil
}

// losses measures a known random loss, which must be inside its binomial interval of 99.9 %.
func (s selftest) losses(ctx context.Context) error {
	const loss, rate = 0.01, 20000.0
	w := netload.Spec{Kind: netload.UDPStream, Size: 64, Rate: rate, Duration: 2 * time.Second, Warmup: window / 5}
	saw, _, err := s.measure(ctx, fmt.Sprintf("lab:host?loss=%g", loss), w, metric.Loss)
	if s.skipped("udp-stream with a known loss", err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("a loss of %g: %w", loss, err)
	}
	half := lossInterval(loss, 2*rate)
	s.report(family.Check{
		Group: "accuracy", Name: "udp-stream with a loss of " + unit.Format(loss, unit.Ratio),
		Measured: unit.Format(saw, unit.Ratio),
		Expected: fmt.Sprintf("%s ± %s", unit.Format(loss, unit.Ratio), unit.Format(half, unit.Ratio)),
		Passed:   math.Abs(saw-loss) <= half,
	})
	return nil
}

// lossInterval returns half the width of the 99.9 % interval of an observed share, for a binomial with probability p
// and n trials, by its normal approximation (n p well above 10).
func lossInterval(p, n float64) float64 { return 3.29 * math.Sqrt(p*(1-p)/n) }

// skipped reports whether err means that this machine cannot run a check. If so, it reports the check as not tried.
func (s selftest) skipped(name string, err error) bool {
	if !errors.Is(err, result.ErrNotSupported) {
		return false
	}
	s.report(family.Check{Group: "accuracy", Name: name, Measured: "not tried", Reason: err.Error()})
	return true
}
