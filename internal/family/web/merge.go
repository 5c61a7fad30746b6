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

// saturatedBelow is the share of the planned requests below which a server is saturated, counting the responses within
// the window.
const saturatedBelow = 0.95

// merge turns an agent's result into a measurement. It is pure.
func merge(planned plannedRun, r httpload.Result) (result.Measurement, error) {
	b := &builder{planned: planned, got: r, Builder: family.NewBuilder(new(Tool).Metrics(planned.workload))}
	b.Window = r.Window
	if err := b.addTotals(); err != nil {
		return result.Measurement{}, err
	}
	if err := b.addPhases(); err != nil {
		return result.Measurement{}, err
	}
	if err := b.addKinds(); err != nil {
		return result.Measurement{}, err
	}
	if r.Elapsed > 0 {
		b.Add(metric.CPUAgents, r.CPU/r.Elapsed)
	}
	b.addFacts()
	b.addOutcomes()
	b.addSaturation()
	b.addSeries()
	if r.Stopped != "" {
		b.Refuse(result.StoppedEarly, "stopped before its time: %s", r.Stopped)
	}
	b.Invalid = append(b.Invalid, r.Invalid...)
	b.Warnings = append(b.Warnings, r.Warnings...)
	return b.Measurement, nil
}

// A builder collects the measurement of a run.
type builder struct {
	*family.Builder
	planned plannedRun
	got     httpload.Result
	latency *netload.Histogram
	limited bool // the generator, not the server, caused the latency
}

// addTotals adds the rate, latency, failures and throughput of all requests.
func (b *builder) addTotals() (err error) {
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
	if err := b.addObjective(); err != nil {
		return err
	}
	if b.got.Planned > 0 {
		b.Add(metric.Failed, float64(b.got.Total.Failed())/float64(b.got.Planned))
	}
	if b.planned.Clients == 0 {
		b.Add(metric.Offered, float64(b.got.Planned)/b.got.Window)
	}
	b.Add(metric.ThroughputIn, float64(b.got.Total.Bytes)*8/b.got.Window)
	b.Histogram("", b.latency.Count(), b.latency.Encode())
	return nil
}

// addObjective adds how many requests are above the official limit of the workload, if there is one. A failed request
// is above every limit: the latency that it counts with elsewhere may be that of a fast error.
func (b *builder) addObjective() error {
	o := b.planned.Objective
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

// addPhases adds the parts of a request's time, other distributions and values, and the generator's lateness.
func (b *builder) addPhases() error {
	encoded := map[string]string{
		metric.Service: b.got.Service, metric.FirstByte: b.got.FirstByte,
		metric.Connect: b.got.Connect, metric.TLS: b.got.TLS,
	}
	for _, phase := range phases {
		h, err := b.addPhase(phase, encoded[phase])
		if err != nil {
			return err
		}
		if h.Count() > 0 && (phase == metric.Connect || phase == metric.TLS) {
			b.Add(phase+metric.Mean, h.Mean()) // the only statistic for few connections
		}
	}
	for _, d := range b.got.Distributions {
		if _, err := b.addPhase(d.Name+"-", d.Encoded); err != nil {
			return err
		}
	}
	for _, name := range b.planned.Values {
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
		b.checkLateness(late)
	}
	return b.checkCPUWait()
}

// addPhase adds a part of a request's time, and returns its histogram.
func (b *builder) addPhase(part, encoded string) (*netload.Histogram, error) {
	h, err := netload.DecodeHistogram(encoded)
	if err != nil {
		return nil, fmt.Errorf("the agent's result: %s: %w", strings.TrimSuffix(part, "-"), err)
	}
	b.Distribution(part, h, phaseMetrics...)
	return h, nil
}

// checkCPUWait makes the run invalid if responses waited for the generator rather than the generator for responses.
func (b *builder) checkCPUWait() error {
	service, err := netload.DecodeHistogram(b.got.Service)
	if err != nil {
		return err
	}
	// Starved compares one wait with the time of a whole response. A response may take several reads, each with a wait,
	// so that a wait of a tenth of that time is much. If no response was read, every long wait counts.
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

// checkLateness makes the run invalid if the generator did not keep to its schedule.
func (b *builder) checkLateness(h *netload.Histogram) {
	if b.latency.Count() == 0 {
		return
	}
	// The 99th percentile of few requests would be a single request, which does not change the median.
	q, words := 0.99, "a hundred"
	if !family.EnoughSamples(h, q) {
		q, words = 0.9, "ten"
	}
	if v := h.Quantile(q); v > max(httpload.LateAtLeast, httpload.LateShare*b.latency.Quantile(0.5)) {
		b.limited = true
		b.Refuse(result.GeneratorLate, "the generator was late: one request in %s was begun more than %.0f µs late",
			words, v*1e6)
	}
}

// addKinds adds each kind of request in a mix.
func (b *builder) addKinds() error {
	if len(b.got.Kinds) < 2 {
		return nil
	}
	for _, k := range b.got.Kinds {
		h, err := k.Histogram()
		if err != nil {
			return fmt.Errorf("the agent's result: %s: %w", k.Name, err)
		}
		b.Add(k.Name+"-"+metric.Rate, float64(k.OK)/b.got.Window)
		b.Distribution(k.Name+"-", h, phaseMetrics...)
		if all := k.OK + k.Failed(); all > 0 {
			b.Add(k.Name+"-"+metric.Failed, float64(k.Failed())/float64(all))
		}
	}
	return nil
}

func (b *builder) addFacts() {
	loop := "open"
	if b.planned.Clients > 0 {
		loop = "closed"
		// The audit checks the rate and latency with it.
		b.Fact("concurrency", strconv.Itoa(cmp.Or(b.got.Clients, b.planned.Clients)))
	}
	b.Fact("workload", b.planned.String())
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
	b.addSearch()
	for _, name := range slices.Sorted(maps.Keys(b.got.Facts)) {
		b.Fact(name, b.got.Facts[name])
	}
}

// addSearch adds the trials of a search, and the number of clients that it found.
func (b *builder) addSearch() {
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

// addSaturation adds whether an open loop sent more than was answered within the window, so that a queue grew.
func (b *builder) addSaturation() {
	if b.planned.Clients > 0 || b.got.Planned == 0 || len(b.got.Steps) == 0 {
		return
	}
	var answered uint64
	for _, n := range b.got.Steps {
		answered += n
	}
	saturated := "no"
	switch {
	case float64(answered) >= saturatedBelow*float64(b.got.Planned):
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

// addOutcomes adds what failed, and makes the run invalid if too much did.
func (b *builder) addOutcomes() {
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

// failures returns the four most frequent failures as text, the most frequent first.
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

// addSeries adds the rate of successes in each step.
func (b *builder) addSeries() {
	step := netload.Step.Seconds()
	values := make([]float64, len(b.got.Steps))
	for i, n := range b.got.Steps {
		values[i] = float64(n) / step
	}
	b.Steps(metric.Rate, step, values)
}
