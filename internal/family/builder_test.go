package family

import (
	"math"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// flat is a distribution of n equal latencies without percentiles above a limit.
type flat struct {
	n     int64
	limit float64
}

func (f flat) Count() int64  { return f.n }
func (f flat) Min() float64  { return 1 }
func (f flat) Max() float64  { return 1 }
func (f flat) Mean() float64 { return 1 }

func (f flat) Quantile(q float64) float64 {
	if q > f.limit {
		return math.NaN()
	}
	return 1
}

func names(values []result.Value) []string {
	var list []string
	for _, v := range values {
		list = append(list, v.Metric)
	}
	return list
}

func TestBuilderAdd(t *testing.T) {
	b := NewBuilder(metric.Of("", metric.Rate, metric.Loss))
	b.Add(metric.Rate, 7)
	b.Add(metric.Throughput, 7) // the run cannot have it
	for _, no := range []float64{-1, math.NaN(), math.Inf(1), 2 * maxNumber} {
		b.Add(metric.Loss, no)
	}
	if len(b.Values) != 1 || b.Values[0] != result.NewValue(metric.Named(metric.Rate), 7) {
		t.Errorf("%+v", b.Values)
	}
}

// TestBuilderLatencies checks that a percentile with too few operations is left out, and that Latencies adds a warning
// for it and Distribution does not.
func TestBuilderLatencies(t *testing.T) {
	all := []string{metric.P50, metric.P99, metric.P999, metric.Mean, metric.Operations}
	metrics := slices.Concat(metric.Of("", all...), metric.Of(metric.Reads, all...))
	p50, p99, p999, mean, n := "read-p50", "read-p99", "read-p99.9", "read-mean", "read-operations"
	for _, test := range []struct {
		name string
		d    flat
		any  bool
		want []string
		few  []string
	}{
		{"none", flat{0, 1}, false, nil, nil},
		{"few", flat{367, 1}, false, []string{p50, mean, n}, []string{p99, p999}},
		{"enough", flat{368, 1}, false, []string{p50, p99, mean, n}, []string{p999}},
		{"another's", flat{1, 0.99}, true, []string{p50, p99, mean, n}, nil},
	} {
		b := NewBuilder(metrics)
		b.AnySamples = test.any
		b.Latencies(metric.Reads, test.d, all...)
		var few []string
		for _, w := range b.Warnings {
			if w.Code == result.FewSamples {
				few = append(few, w.Metric)
			}
		}
		if !slices.Equal(names(b.Values), test.want) || !slices.Equal(few, test.few) {
			t.Errorf("%s: %v, too few for %v", test.name, names(b.Values), few)
		}
		b = NewBuilder(metrics)
		b.AnySamples = test.any
		if b.Distribution(metric.Reads, test.d, all...); len(b.Warnings) > 0 || !slices.Equal(names(b.Values), test.want) {
			t.Errorf("%s, of a part: %v, %v", test.name, names(b.Values), b.Warnings)
		}
	}
}

func TestBuilderLimited(t *testing.T) {
	for why, want := range map[string][]result.Fact{
		"":        {{Name: factLimited, Value: "no"}},
		"its CPU": {{Name: factLimited, Value: "yes"}, {Name: factLimitedWhy, Value: "its CPU"}},
	} {
		b := NewBuilder(nil)
		if b.Limited(why); !slices.Equal(b.Facts, want) {
			t.Errorf("%q: %+v", why, b.Facts)
		}
	}
}
