package web

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	generator "github.com/knotmeter/knotmeter/internal/load/http"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// The gates.
const (
	lateShare   = 0.1    // p99 of the generator's lateness against the median latency that it would blur; its median wait for a CPU likewise
	lateAtLeast = 200e-6 // s
	// keepsUpFrom is the share of the planned requests that have to be answered within the window of a server that keeps up.
	keepsUpFrom = 0.95
)

// merge turns what an agent was answered into a measurement. It is pure.
func merge(a asked, r generator.Result) (result.Measurement, error) {
	b := &builder{spec: a, Result: r, metrics: new(Tool).Metrics(a.Workload)}
	b.out.Window = r.Window
	if err := b.work(); err != nil {
		return result.Measurement{}, err
	}
	if err := b.phases(); err != nil {
		return result.Measurement{}, err
	}
	if err := b.kinds(); err != nil {
		return result.Measurement{}, err
	}
	b.cost()
	b.facts()
	b.outcomes()
	b.saturation()
	b.series()
	if r.Stopped != "" {
		b.invalid("stopped before its time: %s", r.Stopped)
	}
	b.out.Invalid = append(b.out.Invalid, r.Invalid...)
	b.out.Warnings = append(b.out.Warnings, r.Warnings...)
	return b.out, nil
}

// A builder collects the measurement.
type builder struct {
	generator.Result
	spec    asked
	metrics []metric.Metric
	latency *netload.Histogram
	out     result.Measurement
	limited bool // the generator, and not the server, made the latency
}

// add adds a value of a metric that the workload has; what is not finite is no value.
func (b *builder) add(name string, v float64) {
	i := slices.IndexFunc(b.metrics, func(m metric.Metric) bool { return m.Name == name })
	if i >= 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
		b.out.Values = append(b.out.Values, result.NewValue(b.metrics[i], v))
	}
}

func (b *builder) fact(name, value string) {
	b.out.Facts = append(b.out.Facts, result.Fact{Name: name, Value: value})
}

func (b *builder) warn(format string, a ...any) {
	b.out.Warnings = append(b.out.Warnings, fmt.Sprintf(format, a...))
}

func (b *builder) invalid(format string, a ...any) {
	b.out.Invalid = append(b.out.Invalid, fmt.Sprintf(format, a...))
}

// work adds what the workload is about.
func (b *builder) work() (err error) {
	if b.latency, err = b.Total.Histogram(); err != nil {
		return fmt.Errorf("the agent's result: %w", err)
	}
	b.add(metric.Rate, float64(b.Total.OK)/b.Window)
	b.percentiles("", b.latency, true)
	b.objective()
	if b.Planned > 0 {
		b.add(metric.Failed, float64(b.Total.Failed())/float64(b.Planned))
	}
	if b.spec.Clients == 0 {
		b.add(metric.Offered, float64(b.Planned)/b.Window)
	}
	b.add(metric.ThroughputIn, float64(b.Total.Bytes)*8/b.Window)
	if b.latency.Count() > 0 {
		h := result.Histogram{Name: metric.Latency, Unit: "ns", Count: b.latency.Count()}
		if h.Encoded, err = b.latency.Encode(); err != nil {
			return err
		}
		b.out.Histograms = append(b.out.Histograms, h)
	}
	return nil
}

// objective tells how many latencies are above the official limit for what is asked, if there is one.
func (b *builder) objective() {
	o, has := b.spec.call.Objective()
	if !has || b.latency.Count() == 0 {
		return
	}
	b.add(metric.SLOLimit, o.Limit.Seconds())
	b.add(metric.SLOSamples, float64(b.latency.Count()))
	b.add(metric.SLOAbove, float64(b.latency.Above(int64(o.Limit))))
	b.fact("slo", o.Indicator+": "+o.Words)
	b.fact("slo.source", o.Source)
}

// percentiles adds those that the number of samples carries.
func (b *builder) percentiles(prefix string, h *netload.Histogram, all bool) {
	if h.Count() == 0 {
		return
	}
	for _, p := range []struct {
		name string
		q    float64
		main bool
	}{{metric.P50, 0.5, true}, {metric.P90, 0.9, false}, {metric.P99, 0.99, true}, {metric.P999, 0.999, false}} {
		if !p.main && !all {
			continue
		}
		if need := netload.NeededSamples(p.q); h.Count() < need {
			if prefix == "" {
				b.warn("%s needs %d requests, there were %d: left out", p.name, need, h.Count())
			}
			continue
		}
		b.add(prefix+p.name, h.Quantile(p.q))
	}
	if all {
		b.add(prefix+metric.Min, h.Min())
		b.add(prefix+metric.Max, h.Max())
		b.add(prefix+metric.Mean, h.Mean())
	}
}

// phases adds the parts of a request's time, and other distributions.
func (b *builder) phases() error {
	encoded := map[string]string{
		metric.Service: b.Service, metric.FirstByte: b.FirstByte, metric.Connect: b.Connect, metric.TLS: b.TLS,
	}
	for _, phase := range phases {
		h, err := b.distribution(phase, encoded[phase])
		if err != nil {
			return err
		}
		if h.Count() > 0 && (phase == metric.Connect || phase == metric.TLS) {
			b.add(phase+metric.Mean, h.Mean()) // of few connections there is nothing else
		}
	}
	for _, d := range b.Distributions {
		if _, err := b.distribution(d.Name+"-", d.Encoded); err != nil {
			return err
		}
	}
	late, err := netload.DecodeHistogram(b.Late)
	if err != nil {
		return fmt.Errorf("the agent's result: lateness: %w", err)
	}
	if late.Count() > 0 {
		b.add(metric.LatenessP99, late.Quantile(0.99))
		b.late(late)
	}
	return b.wake()
}

// distribution adds what is reported of a part of a request's time.
func (b *builder) distribution(part, encoded string) (*netload.Histogram, error) {
	h, err := netload.DecodeHistogram(encoded)
	if err != nil {
		return nil, fmt.Errorf("the agent's result: %s: %w", strings.TrimSuffix(part, "-"), err)
	}
	b.percentiles(part, h, false)
	return h, nil
}

// wake makes a run invalid in which answers waited for the generator rather than the generator for answers.
func (b *builder) wake() error {
	service, err := netload.DecodeHistogram(b.Service)
	if err != nil || b.Wake < lateAtLeast {
		return err
	}
	// One wait is compared with a whole answer, which may take several to read: a tenth is much. Where none was read at all, any is.
	took, words := 0.0, "no request was answered"
	if service.Count() > 0 {
		took = service.Quantile(0.5)
		words = fmt.Sprintf("half of the requests took up to %.0f µs", took*1e6)
	}
	if b.Wake > lateShare*took {
		b.limited = true
		b.invalid("the generator was the limit: half of its own steps waited more than %.0f µs for a CPU, where %s", b.Wake*1e6, words)
	}
	return nil
}

// late makes a run invalid whose generator did not keep to its plan.
func (b *builder) late(h *netload.Histogram) {
	if b.latency.Count() == 0 {
		return
	}
	// The 99th percentile of few requests would be a single one, which the median does not feel.
	q, words := 0.99, "a hundred"
	if h.Count() < netload.NeededSamples(q) {
		q, words = 0.9, "ten"
	}
	if v := h.Quantile(q); v > max(lateAtLeast, lateShare*b.latency.Quantile(0.5)) {
		b.limited = true
		b.invalid("the generator was late: one request in %s was begun more than %.0f µs late", words, v*1e6)
	}
}

// kinds adds each kind of request of a mix.
func (b *builder) kinds() error {
	if len(b.Kinds) < 2 {
		return nil
	}
	for _, k := range b.Kinds {
		h, err := k.Histogram()
		if err != nil {
			return fmt.Errorf("the agent's result: %s: %w", k.Name, err)
		}
		b.add(k.Name+"-"+metric.Rate, float64(k.OK)/b.Window)
		b.percentiles(k.Name+"-", h, false)
		if all := k.OK + k.Failed(); all > 0 {
			b.add(k.Name+"-"+metric.Failed, float64(k.Failed())/float64(all))
		}
	}
	return nil
}

func (b *builder) cost() {
	if b.Elapsed <= 0 {
		return
	}
	b.add(metric.CPUAgents, b.CPU/b.Elapsed)
}

func (b *builder) facts() {
	loop := "open"
	if b.spec.Clients > 0 {
		loop = "closed"
		b.fact("concurrency", strconv.Itoa(b.spec.Clients)) // by which the audit checks rate and latency
	}
	b.fact("workload", b.spec.String())
	b.fact("loop", loop)
	b.fact("connections", strconv.Itoa(b.Connections))
	b.fact("connections.at-once", strconv.Itoa(b.AtOnce))
	limited := "no"
	switch {
	case b.limited:
		limited = "yes: it did not keep to its plan, or had not CPU enough to look at the answers"
	case b.Limited:
		limited = "yes: the search ended where the generator could not keep to its plan"
		b.warn("the rate is a lower bound: the generator, not the server, ended the search")
	}
	b.fact("generator.limited", limited)
	for i, t := range b.Trials {
		b.fact(fmt.Sprintf("trial.%02d", i+1), fmt.Sprintf("%.1f/s: p99 %.3g s, %d of %d failed", t.Rate, t.P99, t.Failed, t.Planned))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Result.Facts)) {
		b.fact(name, b.Result.Facts[name])
	}
}

// saturation says that an open loop asked for more than was answered meanwhile: a queue grew.
func (b *builder) saturation() {
	if b.spec.Clients > 0 || b.Planned == 0 || len(b.Steps) == 0 {
		return
	}
	var answered uint64
	for _, n := range b.Steps {
		answered += n
	}
	saturated := "no"
	switch {
	case float64(answered) >= keepsUpFrom*float64(b.Planned):
	case b.limited:
		saturated = "unknown: the generator was the limit"
	default:
		saturated = "yes"
		b.warn("saturated: of %.0f requests per second %.0f were answered within the window; the latency is that of a queue, which a longer window makes longer",
			float64(b.Planned)/b.Window, float64(answered)/b.Window)
	}
	b.fact("saturated", saturated)
}

// outcomes says what failed, and judges it.
func (b *builder) outcomes() {
	failed := b.Total.Failed()
	for _, s := range slices.Sorted(maps.Keys(b.Total.Statuses)) {
		b.fact(fmt.Sprintf("status.%d", s), strconv.FormatUint(b.Total.Statuses[s], 10))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Total.Errors)) {
		b.fact("error."+name, strconv.FormatUint(b.Total.Errors[name], 10))
	}
	if b.RetryAfter > 0 {
		b.fact("retry-after", strconv.FormatUint(b.RetryAfter, 10))
	}
	switch said := netload.Failures(failed, b.Planned) + ": " + b.failures(); {
	case b.Total.OK == 0:
		b.invalid("no request succeeded: %s", b.failures())
	case netload.TooManyFailed(failed, b.Planned):
		b.invalid("%s", said)
	case failed > 0:
		b.warn("%s; they count as no faster than the slowest answer", said)
	}
}

// failures are the outcomes that are none, most first.
func (b *builder) failures() string {
	type count struct {
		name string
		n    uint64
	}
	var list []count
	for s, n := range b.Total.Statuses {
		list = append(list, count{"status " + strconv.Itoa(s), n})
	}
	for name, n := range b.Total.Errors {
		list = append(list, count{name, n})
	}
	slices.SortFunc(list, func(x, y count) int {
		return cmp.Or(cmp.Compare(y.n, x.n), cmp.Compare(x.name, y.name))
	})
	var parts []string
	for _, c := range list[:min(4, len(list))] {
		parts = append(parts, fmt.Sprintf("%d × %s", c.n, c.name))
	}
	if len(parts) == 0 {
		return "there was none"
	}
	return strings.Join(parts, ", ")
}

// series are the successes of each step.
func (b *builder) series() {
	if len(b.Steps) == 0 {
		return
	}
	s := result.Series{Name: metric.Rate, Unit: unit.PerSecond, Step: netload.Step.Seconds()}
	for _, n := range b.Steps {
		s.Values = append(s.Values, float64(n)/s.Step)
	}
	b.out.Series = []result.Series{s}
}
