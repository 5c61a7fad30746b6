package netload

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the largest latency that a histogram tells apart, 100 s in ns; what is longer counts as that.
const maxLatency = int64(100e9)

// A Histogram is a distribution of latencies in nanoseconds with three significant digits. Record allocates nothing.
type Histogram struct {
	hdr *hdrhistogram.Histogram
}

// NewHistogram returns an empty one, about 230 kB.
func NewHistogram() *Histogram {
	return &Histogram{hdr: hdrhistogram.New(1, maxLatency, 3)}
}

// Record counts a latency; below 0 is 0, above 100 s is 100 s.
func (h *Histogram) Record(ns int64) {
	// The only error is a value out of range, and it is not.
	_ = h.hdr.RecordValue(min(max(ns, 0), maxLatency))
}

// Merge adds the counts of o.
func (h *Histogram) Merge(o *Histogram) { h.hdr.Merge(o.hdr) }

// AddFailed adds requests that failed after so long, so that none makes the others look faster: a failure counts with
// the time that was waited for it, and as no faster than the slowest success. A quantile q is then what a share q of
// all requests needed to succeed.
func (h *Histogram) AddFailed(waited *Histogram) {
	slowest := h.hdr.Max()
	for _, bar := range waited.hdr.Distribution() {
		if bar.Count > 0 {
			_ = h.hdr.RecordValues(min(max(bar.From, slowest), maxLatency), bar.Count)
		}
	}
}

// Count is how many latencies were recorded.
func (h *Histogram) Count() int64 { return h.hdr.TotalCount() }

// Quantile is the latency in seconds that a fraction q, from 0 to 1, does not exceed.
func (h *Histogram) Quantile(q float64) float64 {
	return float64(h.hdr.ValueAtQuantile(q*100)) / 1e9
}

// Mean is in seconds.
func (h *Histogram) Mean() float64 { return h.hdr.Mean() / 1e9 }

// Stddev is the standard deviation in seconds.
func (h *Histogram) Stddev() float64 { return h.hdr.StdDev() / 1e9 }

// Min is the smallest, in seconds.
func (h *Histogram) Min() float64 { return float64(h.hdr.Min()) / 1e9 }

// Max is in seconds.
func (h *Histogram) Max() float64 { return float64(h.hdr.Max()) / 1e9 }

// Above is how many values are above a limit in nanoseconds, to the histogram's precision.
func (h *Histogram) Above(limit int64) int64 {
	var n int64
	for _, bar := range h.hdr.Distribution() {
		if bar.From > limit {
			n += bar.Count
		}
	}
	return n
}

// Encode is HdrHistogram's V2 compressed form in base64; "" for an empty histogram, or none.
func (h *Histogram) Encode() string {
	if h == nil || h.Count() == 0 {
		return ""
	}
	text, _ := h.hdr.Encode(hdrhistogram.V2CompressedEncodingCookieBase) // it fails for other forms alone
	return string(text)
}

// DecodeHistogram reads what Encode wrote; "" is an empty histogram.
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
