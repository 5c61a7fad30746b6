package counter

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/knotmeter/knotmeter/internal/metric"
)

// texts are examples of the kernel's files, with the counters that they give.
var texts = []struct {
	parse func(io.Reader, map[string]float64) error
	text  string
	want  map[string]float64
}{
	{parsePairs, "Tcp: RtoMin RetransSegs InCsumErrors\nTcp: -1 7 1\nUdp: InCsumErrors RcvbufErrors\nUdp: 2 3\n",
		map[string]float64{metric.TCPRetransmitted: 7, metric.ChecksumErrors: 3, metric.ReceiveBufferErrors: 3}},
	{parseLines, "Ip6InReceives  9\nUdp6RcvbufErrors 4\n", map[string]float64{metric.ReceiveBufferErrors: 4}},
	{parseConntrack, "entries  insert_failed drop early_drop\n0000ffff 00000010 0 1\n00000000 00000001 1 0\n",
		map[string]float64{metric.ConntrackInsertFailed: 17, metric.ConntrackDrops: 2}},
	{parseSoftnet, "07f09822 00000001 00000051 0\n02705266 00000000 00000034 0\n",
		map[string]float64{metric.SoftnetDrops: 1, metric.SoftnetSqueezes: 0x51 + 0x34}},
	{parseDevices, "Inter-| Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n",
		map[string]float64{metric.DeviceDrops: 3 + 4 + 11 + 12}},
	{parsePressure, "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=7\n",
		map[string]float64{metric.CPUPressure: 1.5}},
}

func TestParse(t *testing.T) {
	for _, test := range texts {
		got := map[string]float64{}
		if err := test.parse(strings.NewReader(test.text), got); err != nil || !maps.Equal(got, test.want) {
			t.Errorf("%q: %v, %v", test.text, got, err)
		}
	}
	for text, parse := range map[string]func(io.Reader, map[string]float64) error{
		"Tcp: RetransSegs\nTcp: x\n": parsePairs, "Tcp: A B\nUdp: 1 2\n": parsePairs, "Tcp: A B\nTcp: 1\n": parsePairs,
		"Udp6RcvbufErrors": parseLines, "Udp6RcvbufErrors -1": parseLines, "drop\nxyz\n": parseConntrack, "1 2": parseSoftnet,
		"1 g 2": parseSoftnet, "eth0: 1 2": parseDevices, "some avg10=0.00": parsePressure,
	} {
		if err := parse(strings.NewReader(text), map[string]float64{}); !errors.Is(err, errFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestParseReadErrors checks that every parser reports a read error and a line that is too long, so that neither counts
// as the end of the file.
func TestParseReadErrors(t *testing.T) {
	errRead := errors.New("read error")
	long := strings.Repeat("x", bufio.MaxScanTokenSize+1)
	for _, test := range texts {
		for want, rest := range map[error]io.Reader{
			errRead: iotest.ErrReader(errRead), bufio.ErrTooLong: strings.NewReader(long),
		} {
			err := test.parse(io.MultiReader(strings.NewReader(test.text), rest), map[string]float64{})
			if !errors.Is(err, want) {
				t.Errorf("%q: %v, want %v", test.text, err, want)
			}
		}
	}
}

// TestTable checks that every counter is read from somewhere.
func TestTable(t *testing.T) {
	taken := map[string]bool{ // not from these files
		metric.QueueDrops: true, metric.QueueOverlimits: true, metric.ConntrackUsed: true, metric.CPUThrottled: true,
	}
	for _, counter := range fileCounters {
		taken[counter] = true
	}
	for _, counter := range driverCounters {
		taken[counter] = true
	}
	for _, test := range texts {
		for counter := range test.want {
			taken[counter] = true
		}
	}
	for _, c := range metric.Counters() {
		if !taken[c.Name] {
			t.Errorf("nothing is counted of %s", c.Name)
		}
		delete(taken, c.Name)
	}
	if len(taken) > 0 {
		t.Errorf("not in the table of metrics: %v", taken)
	}
}

func TestSince(t *testing.T) {
	before := Snapshot{Own: map[string]float64{metric.QueueDrops: 1, metric.ConntrackUsed: 0.5, metric.Fragments: 2},
		Node: map[string]float64{}, Machine: map[string]float64{metric.SoftnetDrops: 4}}
	after := Snapshot{Own: map[string]float64{metric.QueueDrops: 3, metric.ConntrackUsed: 0.25, metric.Fragments: 2},
		Node: map[string]float64{metric.DeviceDrops: 1}, Machine: map[string]float64{metric.SoftnetDrops: 5}}
	want := map[string]float64{metric.QueueDrops: 2, metric.ConntrackUsed: 0.25,
		metric.OfNode + metric.DeviceDrops: 1, metric.SoftnetDrops: 1}
	if got := after.Since(before); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// FuzzParse checks that no parser panics or returns a negative or undefined count, whatever the text.
func FuzzParse(f *testing.F) {
	for i, test := range texts {
		f.Add(i, test.text)
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		into := map[string]float64{}
		_ = texts[uint(i)%uint(len(texts))].parse(strings.NewReader(text), into)
		for name, n := range into {
			if !(n >= 0) {
				t.Errorf("%s is %g", name, n)
			}
		}
	})
}
