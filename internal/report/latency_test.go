package report

import (
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestSingleRunsMergeAlike checks that the merged histogram is the same whether or not single runs are kept.
func TestSingleRunsMergeAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	fresh := func() *distribution { return &distribution{histogram: hdrhistogram.New(1, longestNanoseconds, 3)} }
	merged, single := fresh(), fresh()
	for i := range 30 {
		// The histograms also have other ranges and digits than ours. Latencies above an hour are left out in both.
		h := hdrhistogram.New(1+int64(i%3)*1000, []int64{longestNanoseconds, 1e9, 1e14}[i%3], 2+i%2)
		for range i * i {
			_ = h.RecordValues(random.Int64N(int64(1)<<(10+i%36)), 1+random.Int64N(1000))
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		one := result.Histogram{Name: "latency", Unit: "ns", Encoded: string(encoded)}
		first, second := merged.merge(one, false), single.merge(one, true)
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Errorf("histogram %d: %v and %v", i, first, second)
		}
	}
	if merged.count() == 0 || !merged.histogram.Equals(single.histogram) {
		t.Errorf("%d latencies, and one by one %d", merged.count(), single.count())
	}
	if len(merged.Runs) != 0 || len(single.Runs) != 30 {
		t.Errorf("%d and %d runs alone", len(merged.Runs), len(single.Runs))
	}
	for _, d := range []*distribution{merged, single} {
		if err := d.merge(result.Histogram{Name: "latency", Unit: "ns", Encoded: "HISTEQ=="}, d == single); err == nil {
			t.Error("no histogram was merged")
		}
	}
}
