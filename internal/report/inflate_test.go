package report

import (
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestMerger holds the merger to the library: the same histogram from any number of others.
func TestMerger(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var m merger
	got, want := hdrhistogram.New(1, longest, 3), hdrhistogram.New(1, longest, 3)
	for i := range 60 {
		// Others than ours too: fewer digits, a coarser unit, other ranges.
		h := hdrhistogram.New(1+int64(i%3)*1000, []int64{longest, 1e9, 1e12}[i%3], 2+i%2)
		for range i * i {
			_ = h.RecordValues(random.Int64N(int64(1)<<(10+i%30)), 1+random.Int64N(1000)) // above its range is left out
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := hdrhistogram.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		dropped, err := m.add(string(encoded), got)
		if lost := want.Merge(decoded); err != nil || dropped != lost {
			t.Fatalf("histogram %d: %d left out, %v; want %d", i, dropped, err, lost)
		}
	}
	if !got.Equals(want) {
		t.Errorf("%d latencies up to %d, want %d up to %d", got.TotalCount(), got.Max(), want.TotalCount(), want.Max())
	}
	if got.TotalCount() == 0 {
		t.Error("nothing was merged")
	}
}

func FuzzMerger(f *testing.F) {
	h := hdrhistogram.New(1, longest, 3)
	for v := range int64(5000) {
		_ = h.RecordValue(v * v)
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(encoded))
	f.Add("")
	f.Add("HISTEQ==")
	f.Fuzz(func(t *testing.T, text string) {
		var m merger
		to := hdrhistogram.New(1, longest, 3)
		_, first := m.add(text, to)
		before := to.TotalCount()
		_, again := m.add(text, to)
		if (first == nil) != (again == nil) || to.TotalCount() != 2*before {
			t.Errorf("the second time %v and %d, the first time %v and %d", again, to.TotalCount()-before, first, before)
		}
	})
}
