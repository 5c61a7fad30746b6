package report

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A merger adds encoded histograms to one that is merged. It does what the library's Decode and Merge
// do, with one inflater and one buffer for all of them: a report may read tens of thousands, and the
// library makes 40 kB anew for each.
type merger struct {
	inflater io.ReadCloser
	text     []byte // after base64
	plain    bytes.Buffer
}

// The parts of the format are those of HdrHistogram's V2 encoding: a cookie and a length before the
// compressed part; in it a header of 40 bytes, then counts as zigzag LEB128, negative ones for so many
// zeros.
const (
	compressedCookie = 0x1c849304
	plainCookie      = 0x1c849303
	cookieMask       = ^uint32(0xf0) // the word size, which V2 does not use
	plainHeader      = 40
)

var errHistogram = errors.New("it is not a histogram in V2 encoding")

// add adds an encoded histogram and returns how many of its latencies are out of the range of to.
func (m *merger) add(encoded string, to *hdrhistogram.Histogram) (dropped int64, err error) {
	counts, lowest, digits, err := m.inflate(encoded)
	if err != nil {
		return 0, err
	}
	index := int64(0)
	for len(counts) > 0 {
		v, n := binary.Varint(counts)
		if n <= 0 {
			return dropped, fmt.Errorf("%w: its counts end in the middle of a number", errHistogram)
		}
		counts = counts[n:]
		if v < 0 {
			index -= v
			continue
		}
		if v > 0 && to.RecordValues(valueAt(index, lowest, digits), v) != nil {
			dropped += v
		}
		index++
	}
	return dropped, nil
}

// inflate returns the counts of an encoded histogram, its lowest discernible value and its significant
// digits. The counts are good until the next call.
func (m *merger) inflate(encoded string) (counts []byte, lowest int64, digits int, err error) {
	m.text, err = base64.StdEncoding.AppendDecode(m.text[:0], []byte(encoded))
	if err != nil {
		return nil, 0, 0, err
	}
	if len(m.text) < 8 || binary.BigEndian.Uint32(m.text)&cookieMask != compressedCookie&cookieMask {
		return nil, 0, 0, errHistogram
	}
	compressed := bytes.NewReader(m.text[8:])
	if m.inflater == nil {
		m.inflater, err = zlib.NewReader(compressed)
	} else {
		err = m.inflater.(zlib.Resetter).Reset(compressed, nil)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	m.plain.Reset()
	const most = 1 << 20 // three times the largest that there is
	if _, err := m.plain.ReadFrom(io.LimitReader(m.inflater, most)); err != nil {
		return nil, 0, 0, err
	}
	plain := m.plain.Bytes()
	if len(plain) < plainHeader || binary.BigEndian.Uint32(plain)&cookieMask != plainCookie&cookieMask {
		return nil, 0, 0, errHistogram
	}
	length := int64(binary.BigEndian.Uint32(plain[4:]))
	digits, lowest = int(binary.BigEndian.Uint32(plain[12:])), int64(binary.BigEndian.Uint64(plain[16:]))
	if length > int64(len(plain)-plainHeader) || digits < 1 || digits > 5 || lowest < 1 {
		return nil, 0, 0, errHistogram
	}
	return plain[plainHeader : plainHeader+length], lowest, digits, nil
}

// valueAt is the lowest value that the count with this index is of: half of the counts of each bucket
// but the first have the values of the bucket before it.
func valueAt(index, lowest int64, digits int) int64 {
	largest := int64(2)
	for range digits {
		largest *= 10
	}
	half := bits.Len64(uint64(largest-1)) - 1 // counts in half a bucket, as a power of two
	unit := bits.Len64(uint64(lowest)) - 1
	bucket := index>>half - 1
	within := index&(1<<half-1) + 1<<half
	if bucket < 0 {
		bucket, within = 0, within-1<<half
	}
	return within << (bucket + int64(unit))
}
