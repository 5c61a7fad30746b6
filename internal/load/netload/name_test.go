package netload

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	const forward, streamSize = Forward, DefaultStreamSize
	for text, want := range map[string]Spec{
		"tcp-stream":                    {Kind: TCPStream, Flows: 1, Size: streamSize, Direction: forward},
		"tcp-stream:flows=4,size=16KiB": {Kind: TCPStream, Flows: 4, Size: 16384, Direction: forward},
		"tcp-stream:direction=both":     {Kind: TCPStream, Flows: 1, Size: streamSize, Direction: Both},
		"tcp-stream:mss=1398,congestion=reno": {Kind: TCPStream, Flows: 1, Size: streamSize, Direction: forward,
			MSS: 1398, Congestion: "reno"},
		"udp-stream:max-rate=1Gbit/s": {Kind: UDPStream, Flows: 1, Direction: forward, Loss: 0.001,
			MaxRate: 1e9},
		"tcp-rr-loaded:max-rate=1000000": {Kind: TCPRRLoaded, Flows: 1, Request: 1, Response: 1, MaxRate: 1e6},
		"udp-stream":                     {Kind: UDPStream, Flows: 1, Direction: forward, Loss: 0.001},
		"udp-stream:loss=1%":             {Kind: UDPStream, Flows: 1, Direction: forward, Loss: 0.01},
		"udp-stream:rate=10k/s,size=64":  {Kind: UDPStream, Flows: 1, Size: 64, Direction: forward, Rate: 1e4},
		"udp-stream:rate=2.5Gbit/s":      {Kind: UDPStream, Flows: 1, Direction: forward, BitRate: 2.5e9},
		"udp-stream:rate=5,loss=0.5":     {Kind: UDPStream, Flows: 1, Direction: forward, Rate: 5},
		"udp-stream:rate=5,offload=true": {Kind: UDPStream, Flows: 1, Direction: forward, Rate: 5,
			Offload: true},
		"udp-stream-unpaced:buffer=1MiB":        {Kind: UDPUnpaced, Flows: 1, Direction: forward, Buffer: 1 << 20},
		"udp-stream-unpaced":                    {Kind: UDPUnpaced, Flows: 1, Direction: forward},
		"udp-stream-unpaced:flows=4,size=1400":  {Kind: UDPUnpaced, Flows: 4, Size: 1400, Direction: forward},
		"tcp-rr":                                {Kind: TCPRR, Flows: 1, Request: 1, Response: 1},
		"tcp-rr:request=200,response=1k,rate=7": {Kind: TCPRR, Flows: 1, Request: 200, Response: 1000, Rate: 7},
		"udp-rr": {Kind: UDPRR, Flows: 1, Request: 1, Response: 1,
			Timeout: DefaultUDPTimeout},
		"udp-rr:timeout=1s": {Kind: UDPRR, Flows: 1, Request: 1, Response: 1, Timeout: time.Second},
		"tcp-crr:flows=3":   {Kind: TCPCRR, Flows: 3, Request: 1, Response: 1},
		"ping": {Kind: Ping, Flows: 1, Size: 56, Interval: 10 * time.Millisecond,
			Rate: 100, Timeout: DefaultUDPTimeout},
		"ping:interval=1s,flows=2,size=1400": {Kind: Ping, Flows: 2, Size: 1400, Interval: time.Second,
			Rate: 2, Timeout: DefaultUDPTimeout},
		"tcp-rr-loaded": {Kind: TCPRRLoaded, Flows: 1, Request: 1, Response: 1},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) is %+v, %v; wanted %+v", text, got, err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           `no workload ""`,
		"tcp-strom":                  "there are tcp-stream, udp-stream",
		"tcp-strom:flows=1":          `no workload "tcp-strom"`,
		"tcp-stream:flows":           "not key=value",
		"tcp-stream:flows=2,":        "not key=value",
		"tcp-stream:flows=2,flows=3": "given twice",
		"tcp-stream:flows=0":         "1 to 128",
		"tcp-stream:flows=129":       "flows=129",
		"tcp-stream:flows=x":         "flows=x",
		"tcp-stream:size=17MiB":      "1 to 16MiB",
		"tcp-stream:size=-1":         "size=-1",
		"tcp-stream:rate=5":          "limit the path",
		"tcp-stream:loss=0.1":        "flows, size, direction",
		"tcp-stream:mss=20":          "mss=20",
		"tcp-stream:buffer=1KiB":     "4KiB to 512MiB",
		"idle:flows=3":               "idle has no parameters",
		"tcp-rr:buffer=1MiB":         "a parameter of streams",
		"tcp-stream:congestion=a b":  "congestion",
		"tcp-rr:mss=1398":            "a parameter of tcp-stream",
		"tcp-stream:direction=up":    "forward, reverse or both",
		"tcp-stream:speed=5":         "no such parameter",
		"udp-stream:size=65508":      "65507",
		"udp-stream:loss=0":          "above 0",
		"udp-stream:loss=1":          "a fraction above 0 and below 1",
		"udp-stream:loss=nan":        "loss=nan",
		"udp-stream:rate=-1":         "rate=-1",
		"udp-stream:rate=2e9":        "1e9",
		"udp-stream:rate=5 B":        "op/s",
		"udp-stream:rate=0bit/s":     "above 0",
		"udp-stream:rate=2Tbit/s":    "1 Tbit/s",
		"tcp-rr:rate=1Mbit/s":        "up to 1e9 op/s",
		"udp-stream-unpaced:rate=5":  "flows, size, direction, offload",
		"udp-stream-unpaced:loss=1%": "flows, size, direction, offload",
		"udp-stream-unpaced:size=0x": "size=0x",
		"tcp-rr:direction=forward":   "a parameter of streams; tcp-rr has flows, request",
		"tcp-rr:request=0":           "1 to 16MiB",
		"udp-rr:timeout=2m":          "1µs to 1m",
		"udp-rr:timeout=5":           "timeout=5",
		"ping:interval=1us":          "100µs to 1m",
		"ping:rate=5":                "flows, size, interval, timeout",
		"ping:size=65508":            "65507",
		"udp-stream:offload=maybe":   "offload=maybe",
	} {
		got, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) is %+v, %v; wanted an error about %q", text, got, err, want)
		}
	}
}

// FuzzParse checks that Name and Parse are inverse: a case's name describes its workload completely.
func FuzzParse(f *testing.F) {
	for _, k := range Kinds() {
		f.Add(string(k))
	}
	for _, text := range []string{
		"tcp-stream:flows=4,size=16KiB,direction=both", "udp-stream:rate=1234.5,size=64,offload=true", "udp-stream:loss=1e-5",
		"tcp-rr:request=200,response=1k,rate=0.3", "udp-rr:timeout=1.5ms",
		"tcp-rr-loaded:size=1", "tcp-stream:", "x:y", "udp-stream:rate=1e-300",
		"udp-stream:rate=10Gbit/s", "udp-stream:rate=1.5bit/s", "ping:interval=3ms,flows=7",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.Name())
		if err != nil || again != s {
			t.Errorf("%q is %+v, written %q, read as %+v, %v", text, s, s.Name(), again, err)
		}
	})
}

func ExampleParse() {
	s, err := Parse("tcp-stream:flows=4,size=16KiB")
	fmt.Println(s.Flows, s.Size, s.Name(), err)
	// Output: 4 16384 tcp-stream:flows=4,size=16384 <nil>
}

// TestSized checks that a rate in bit/s is converted with the size of datagrams, and that no rate exceeds the limit.
func TestSized(t *testing.T) {
	for text, want := range map[string]float64{
		"udp-stream:rate=80Mbit/s":                  1e4,
		"udp-stream:rate=80Mbit/s,max-rate=8Mbit/s": 1e3,
		"udp-stream:rate=500":                       500,
		"udp-stream:rate=5000,max-rate=8Mbit/s":     1e3,
		"udp-stream":                                0,
		"udp-stream-unpaced":                        0,
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := s.Sized(1000)
		if again, err := got.Resolved(); err != nil || again != got || got.Rate != want || got.Size != 1000 {
			t.Errorf("%s of 1000 bytes is %+v, resolved %+v, %v; want a rate of %g", text, got, again, err, want)
		}
	}
}

func ExampleSpec_Name() {
	fmt.Println(Spec{Kind: UDPStream, BitRate: 10e9}.Name())
	fmt.Println(Spec{Kind: TCPRR}.Name())
	fmt.Println(Spec{Kind: TCPRR, Rate: 5000}.Name())
	// Output:
	// udp-stream:rate=10Gbit/s
	// tcp-rr
	// tcp-rr:rate=5000
}
