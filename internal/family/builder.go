package family

import (
	"fmt"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/stats"
)

// confidence is the level of the confidence interval for which a percentile must have enough samples.
const confidence = 0.95

// maxNumber is the largest value that Add accepts.
const maxNumber = 1e18

// A Builder collects the measurement of a run.
type Builder struct {
	result.Measurement
	metrics map[string]metric.Metric
	// AnySamples keeps percentiles with any number of samples. It is for percentiles that another program computed.
	AnySamples bool
}

// NewBuilder returns a Builder for a measurement that may have only these metrics.
func NewBuilder(metrics []metric.Metric) *Builder {
	b := &Builder{metrics: map[string]metric.Metric{}}
	for _, m := range metrics {
		b.metrics[m.Name] = m
	}
	return b
}

// Add adds a value of a metric. It ignores metrics that the measurement may not have, and numbers that are negative,
// NaN or above maxNumber.
func (b *Builder) Add(name string, number float64) {
	if m, has := b.metrics[name]; has && number >= 0 && number <= maxNumber {
		b.Values = append(b.Values, result.NewValue(m, number))
	}
}

// Fact adds a fact.
func (b *Builder) Fact(name, value string) {
	b.Facts = append(b.Facts, result.Fact{Name: name, Value: value})
}

// The facts about whether the generator limited the run, and why.
const (
	factLimited    = "generator.limited" // yes or no
	factLimitedWhy = "generator.limited.why"
)

// Limited adds the facts about whether the generator was the limit; an empty reason means that it was not.
func (b *Builder) Limited(why string) {
	if why == "" {
		b.Fact(factLimited, "no")
		return
	}
	b.Fact(factLimited, "yes")
	b.Fact(factLimitedWhy, why)
}

// Warn adds a warning about the run.
func (b *Builder) Warn(code result.Code, format string, a ...any) {
	b.Warnings = append(b.Warnings, result.Warning{Code: code, Text: fmt.Sprintf(format, a...)})
}

// Refuse makes the run invalid, for a reason.
func (b *Builder) Refuse(code result.Code, format string, a ...any) {
	b.Invalid = append(b.Invalid, result.Warning{Code: code, Text: fmt.Sprintf(format, a...)})
}

// RequireMetric makes the run invalid if it has no value of the named metric, which verdicts are about, because it was
// too short. It does nothing if the run is invalid already.
func (b *Builder) RequireMetric(name string) {
	if _, has := (result.Run{Values: b.Values}).Value(name); !has && len(b.Invalid) == 0 {
		b.Refuse(result.MetricMissing, "%s, which the verdict is about, takes more operations than there were; a longer "+
			"--duration has more", name)
	}
}

// Steps adds the series of a metric over the window; step is in seconds.
func (b *Builder) Steps(name string, step float64, values []float64) {
	if len(values) > 0 {
		b.Series = append(b.Series, result.Series{Name: name, Unit: metric.Named(name).Unit, Step: step, Values: values})
	}
}

// A Distribution is a distribution of latencies in seconds. Statistics that it does not have are NaN.
type Distribution interface {
	Count() int64
	Quantile(q float64) float64
	Min() float64
	Max() float64
	Mean() float64
}

// Latencies adds the named statistics of d, with part as the prefix of their names, and a warning for each percentile
// with too few operations.
func (b *Builder) Latencies(part string, d Distribution, names ...string) {
	for _, name := range b.Distribution(part, d, names...) {
		need := stats.MinSamples(metric.Quantile(name), confidence)
		text := fmt.Sprintf("%s needs %d operations, there were %d: left out", part+name, need, d.Count())
		b.Warnings = append(b.Warnings, result.Warning{Code: result.FewSamples, Metric: part + name, Text: text})
	}
}

// Distribution adds the named statistics of d, with part as the prefix of their names. It returns the percentiles that
// it left out because of too few operations.
func (b *Builder) Distribution(part string, d Distribution, names ...string) (lacking []string) {
	if d.Count() <= 0 && !b.AnySamples {
		return nil
	}
	for _, name := range names {
		q := metric.Quantile(name)
		if q > 0 && !b.AnySamples && !EnoughSamples(d, q) {
			lacking = append(lacking, name)
			continue
		}
		b.Add(part+name, statistic(d, name))
	}
	return lacking
}

// EnoughSamples reports whether a distribution has enough samples for a confidence interval of a quantile.
func EnoughSamples(d Distribution, q float64) bool {
	return d.Count() >= int64(stats.MinSamples(q, confidence))
}

// statistic returns the named statistic of a distribution.
func statistic(d Distribution, name string) float64 {
	switch name {
	case metric.Min:
		return d.Min()
	case metric.Max:
		return d.Max()
	case metric.Mean:
		return d.Mean()
	case metric.Operations:
		return float64(d.Count())
	}
	return d.Quantile(metric.Quantile(name))
}

// Histogram adds the histogram of the latencies of a part, encoded as HdrHistogram V2.
func (b *Builder) Histogram(part string, count int64, encoded string) {
	if count > 0 {
		h := result.Histogram{Name: part + metric.Latency, Unit: "ns", Count: count, Encoded: encoded}
		b.Histograms = append(b.Histograms, h)
	}
}
