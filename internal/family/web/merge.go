package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/load/httpload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// keepsUpFrom is the share of the planned requests that have to be answered within the window of a server that keeps
// up.
const keepsUpFrom = 0.95

// merge turns what an agent was answered into a measurement. It is pure.
func merge(a asking, r httpload.Result) (result.Measurement, error) {
	b := &builder{spec: a, got: r, Builder: family.NewBuilder(new(Tool).Metrics(a.workload))}
	b.Window = r.Window
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
		b.Refuse(result.StoppedEarly, "stopped before its time: %s", r.Stopped)
	}
	b.Invalid = append(b.Invalid, r.Invalid...)
	b.Warnings = append(b.Warnings, r.Warnings...)
	return b.Measurement, nil
}

// A builder collects the measurement.
type builder struct {
	*family.Builder
	spec    asking
	got     httpload.Result
	latency *netload.Histogram
	limited bool // the generator, and not the server, made the latency
}

// work adds what the workload is about.
func (b *builder) work() (err error) {
	if b.latency, err = b.got.Total.Histogram(); err != nil {
		return fmt.Errorf("the agent's result: %w", err)
	}
	b.Add(metric.Rate, float64(b.got.Total.OK)/b.got.Window)
	if i := len(b.Values) - 1; i >= 0 {
		b.Values[i].Step = b.got.Step
	}
	if b.got.Clients > 0 {
		b.Add(metric.Clients, float64(b.got.Clients))
	}
	b.Latencies("", b.latency, latencies...)
	if err := b.objective(); err != nil {
		return err
	}
	if b.got.Planned > 0 {
		b.Add(metric.Failed, float64(b.got.Total.Failed())/float64(b.got.Planned))
	}
	if b.spec.Clients == 0 {
		b.Add(metric.Offered, float64(b.got.Planned)/b.got.Window)
	}
	b.Add(metric.ThroughputIn, float64(b.got.Total.Bytes)*8/b.got.Window)
	b.Histogram("", b.latency.Count(), b.latency.Encode())
	return nil
}

// objective adds how many requests are above the official limit for what is asked, if there is one. A request without
// success is above every limit: the latency that it counts with elsewhere may be that of a fast error.
func (b *builder) objective() error {
	o := b.spec.Objective
	if o == nil || b.latency.Count() == 0 {
		return nil
	}
	successes, err := netload.DecodeHistogram(b.got.Total.Latency)
	if err != nil {
		return fmt.Errorf("the agent's result: %w", err)
	}
	b.Add(metric.SLOLimit, o.Limit.Seconds())
	b.Add(metric.SLOSamples, float64(b.latency.Count()))
	b.Add(metric.SLOAbove, float64(b.latency.Count()-successes.Count()+successes.Above(int64(o.Limit))))
	b.Fact("slo", o.Indicator+": "+o.Words)
	b.Fact("slo.source", o.Source)
	return nil
}

// phases adds the parts of a request's time, and other distributions.
func (b *builder) phases() error {
	encoded := map[string]string{
		metric.Service: b.got.Service, metric.FirstByte: b.got.FirstByte,
		metric.Connect: b.got.Connect, metric.TLS: b.got.TLS,
	}
	for _, phase := range phases {
		h, err := b.phase(phase, encoded[phase])
		if err != nil {
			return err
		}
		if h.Count() > 0 && (phase == metric.Connect || phase == metric.TLS) {
			b.Add(phase+metric.Mean, h.Mean()) // of few connections there is nothing else
		}
	}
	for _, d := range b.got.Distributions {
		if _, err := b.phase(d.Name+"-", d.Encoded); err != nil {
			return err
		}
	}
	for _, name := range b.spec.Values {
		if v, has := b.got.Values[name]; has {
			b.Add(name, v)
		}
	}
	late, err := netload.DecodeHistogram(b.got.Late)
	if err != nil {
		return fmt.Errorf("the agent's result: lateness: %w", err)
	}
	if late.Count() > 0 {
		b.Add(metric.LatenessP99, late.Quantile(0.99))
		b.late(late)
	}
	return b.wake()
}

// phase adds what is reported of a part of a request's time.
func (b *builder) phase(part, encoded string) (*netload.Histogram, error) {
	h, err := netload.DecodeHistogram(encoded)
	if err != nil {
		return nil, fmt.Errorf("the agent's result: %s: %w", strings.TrimSuffix(part, "-"), err)
	}
	b.Distribution(part, h, ofPhase...)
	return h, nil
}

// wake makes a run invalid in which answers waited for the generator rather than the generator for answers.
func (b *builder) wake() error {
	service, err := netload.DecodeHistogram(b.got.Service)
	if err != nil {
		return err
	}
	// One wait is compared with a whole answer, which may take several to read: a tenth is much. Where none was read at
	// all, any is.
	took, words := 0.0, "no request was answered"
	if service.Count() > 0 {
		took = service.Quantile(0.5)
		words = fmt.Sprintf("half of the requests took up to %.0f µs", took*1e6)
	}
	if b.got.Starved(took) {
		b.limited = true
		b.Refuse(result.GeneratorLimit, "the generator was the limit: half of its own steps waited more than %.0f µs for a "+
			"CPU, where %s", b.got.Wake*1e6, words)
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
	if !family.Carries(h, q) {
		q, words = 0.9, "ten"
	}
	if v := h.Quantile(q); v > max(httpload.LateAtLeast, httpload.LateShare*b.latency.Quantile(0.5)) {
		b.limited = true
		b.Refuse(result.GeneratorLate, "the generator was late: one request in %s was begun more than %.0f µs late",
			words, v*1e6)
	}
}

// kinds adds each kind of request of a mix.
func (b *builder) kinds() error {
	if len(b.got.Kinds) < 2 {
		return nil
	}
	for _, k := range b.got.Kinds {
		h, err := k.Histogram()
		if err != nil {
			return fmt.Errorf("the agent's result: %s: %w", k.Name, err)
		}
		b.Add(k.Name+"-"+metric.Rate, float64(k.OK)/b.got.Window)
		b.Distribution(k.Name+"-", h, ofPhase...)
		if all := k.OK + k.Failed(); all > 0 {
			b.Add(k.Name+"-"+metric.Failed, float64(k.Failed())/float64(all))
		}
	}
	return nil
}

func (b *builder) cost() {
	if b.got.Elapsed <= 0 {
		return
	}
	b.Add(metric.CPUAgents, b.got.CPU/b.got.Elapsed)
}

func (b *builder) facts() {
	loop := "open"
	if b.spec.Clients > 0 {
		loop = "closed"
		// By which the audit checks rate and latency.
		b.Fact("concurrency", strconv.Itoa(cmp.Or(b.got.Clients, b.spec.Clients)))
	}
	b.Fact("workload", b.spec.String())
	b.Fact("loop", loop)
	b.Fact("connections", strconv.Itoa(b.got.Connections))
	b.Fact("connections.at-once", strconv.Itoa(b.got.AtOnce))
	limited := ""
	switch {
	case b.limited:
		limited = "it did not keep to its plan, or had not CPU enough to look at the answers"
	case b.got.Limited:
		limited = "the search ended where the generator could not keep to its plan"
		b.Warn(result.LowerBound, "the rate is a lower bound: the generator, not the server, ended the search")
	}
	b.Limited(limited)
	b.search()
	for _, name := range slices.Sorted(maps.Keys(b.got.Facts)) {
		b.Fact(name, b.got.Facts[name])
	}
}

// search adds the trials of a search, and what it found of clients.
func (b *builder) search() {
	for i, t := range b.got.Trials {
		words := fmt.Sprintf("%.1f/s: p99 %.3g s, %d of %d failed", t.Rate, t.P99, t.Failed, t.Planned)
		if t.Clients > 0 {
			words = fmt.Sprintf("%s: %.1f/s, p50 %.3g s, p99 %.3g s, %d of %d failed", unit.Plural(t.Clients, "client"),
				t.Rate, t.P50, t.P99, t.Failed, t.Planned)
		}
		b.Fact(fmt.Sprintf("trial.%02d", i+1), words)
	}
	switch {
	case b.got.Clients == 0:
	case b.got.Rises:
		b.Fact("clients.found", fmt.Sprintf("not saturated with %d, the most without failures", b.got.Clients))
		if !b.got.Limited {
			b.Warn(result.LowerBound, "the rate is a lower bound: it still rose at %s, the most that were tried without "+
				"failures", unit.Plural(b.got.Clients, "client"))
		}
	default:
		words := fmt.Sprintf("saturated with %d: more raise the rate by at most %.0f %%",
			b.got.Clients, 100*httpload.Saturated)
		if b.got.TooFew > 0 {
			words += fmt.Sprintf("; %d are too few", b.got.TooFew)
		}
		b.Fact("clients.found", words)
	}
}

// saturation says that an open loop asked for more than was answered meanwhile: a queue grew.
func (b *builder) saturation() {
	if b.spec.Clients > 0 || b.got.Planned == 0 || len(b.got.Steps) == 0 {
		return
	}
	var answered uint64
	for _, n := range b.got.Steps {
		answered += n
	}
	saturated := "no"
	switch {
	case float64(answered) >= keepsUpFrom*float64(b.got.Planned):
	case b.limited:
		saturated = "unknown: the generator was the limit"
	default:
		saturated = "yes"
		b.Warn(result.Saturated, "saturated: of %.0f requests per second %.0f were answered within the window; the latency "+
			"is that of a queue, which a longer window makes longer",
			float64(b.got.Planned)/b.got.Window, float64(answered)/b.got.Window)
	}
	b.Fact("saturated", saturated)
}

// outcomes says what failed, and judges it.
func (b *builder) outcomes() {
	failed := b.got.Total.Failed()
	for _, s := range slices.Sorted(maps.Keys(b.got.Total.Statuses)) {
		b.Fact(fmt.Sprintf("status.%d", s), strconv.FormatUint(b.got.Total.Statuses[s], 10))
	}
	for _, name := range slices.Sorted(maps.Keys(b.got.Total.Errors)) {
		b.Fact("error."+name, strconv.FormatUint(b.got.Total.Errors[name], 10))
	}
	if b.got.RetryAfter > 0 {
		b.Fact("retry-after", strconv.FormatUint(b.got.RetryAfter, 10))
	}
	switch said := netload.Failures(failed, b.got.Planned) + ": " + b.failures(); {
	case b.got.Total.OK == 0:
		b.Refuse(result.NothingDone, "no request succeeded: %s", b.failures())
	case netload.TooManyFailed(failed, b.got.Planned):
		b.Refuse(result.TooManyFailed, "%s", said)
	case failed > 0:
		b.Warn(result.SomeFailed, "%s; they count as no faster than the slowest answer", said)
	}
}

// failures are the outcomes that are none, most first.
func (b *builder) failures() string {
	type count struct {
		name string
		n    uint64
	}
	var list []count
	for s, n := range b.got.Total.Statuses {
		list = append(list, count{"status " + strconv.Itoa(s), n})
	}
	for name, n := range b.got.Total.Errors {
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
	step := netload.Step.Seconds()
	values := make([]float64, len(b.got.Steps))
	for i, n := range b.got.Steps {
		values[i] = float64(n) / step
	}
	b.Steps(metric.Rate, step, values)
}
