package netload

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the largest latency in a histogram, 100 s in ns; longer ones count as that.
const maxLatency = int64(100e9)

// A Histogram is a distribution of latencies in nanoseconds with three significant digits. Record allocates nothing.
type Histogram struct {
	hdr *hdrhistogram.Histogram
}

// NewHistogram returns an empty histogram of about 230 kB.
func NewHistogram() *Histogram {
	return &Histogram{hdr: hdrhistogram.New(1, maxLatency, 3)}
}

// Record counts a latency in ns; values outside 0 to 100 s count as the nearest of these.
func (h *Histogram) Record(ns int64) {
	// The only error is a value out of range.
	_ = h.hdr.RecordValue(min(max(ns, 0), maxLatency))
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) { h.hdr.Merge(o.hdr) }

// AddFailed adds failed requests by the time they were waited for. A failure counts as at least as slow as the slowest
// success, so that failures never make the others look faster: a quantile q is then the time within which a share q of
// all requests succeeded.
func (h *Histogram) AddFailed(waited *Histogram) {
	slowest := h.hdr.Max()
	for _, bar := range waited.hdr.Distribution() {
		if bar.Count > 0 {
			_ = h.hdr.RecordValues(min(max(bar.From, slowest), maxLatency), bar.Count)
		}
	}
}

// Count returns how many latencies were recorded.
func (h *Histogram) Count() int64 { return h.hdr.TotalCount() }

// Quantile returns the latency in seconds that a fraction q, from 0 to 1, does not exceed.
func (h *Histogram) Quantile(q float64) float64 {
	return float64(h.hdr.ValueAtQuantile(q*100)) / 1e9
}

// Mean returns the mean in seconds.
func (h *Histogram) Mean() float64 { return h.hdr.Mean() / 1e9 }

// Stddev returns the standard deviation in seconds.
func (h *Histogram) Stddev() float64 { return h.hdr.StdDev() / 1e9 }

// Min returns the smallest latency in seconds.
func (h *Histogram) Min() float64 { return float64(h.hdr.Min()) / 1e9 }

// Max returns the largest latency in seconds.
func (h *Histogram) Max() float64 { return float64(h.hdr.Max()) / 1e9 }

// Above returns how many values are above a limit in nanoseconds, to the histogram's precision.
func (h *Histogram) Above(limit int64) int64 {
	var n int64
	for _, bar := range h.hdr.Distribution() {
		if bar.From > limit {
			n += bar.Count
		}
	}
	return n
}

// Encode returns HdrHistogram's V2 compressed form in base64; "" for a nil or empty histogram.
func (h *Histogram) Encode() string {
	if h == nil || h.Count() == 0 {
		return ""
	}
	text, _ := h.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase) // only other encodings can fail
	return string(text)
}

// DecodeHistogram reads the form that Encode writes; "" is an empty histogram.
func DecodeHistogram(text string) (*Histogram, error) {
	if text == "" {
		return NewHistogram(), nil
	}
	hdr, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return &Histogram{hdr: hdr}, nil
}
