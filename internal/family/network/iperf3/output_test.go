package iperf3

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// recorded returns the workloads of recorded outputs of iperf 3.12, or 3.21 where the name has it, on a loopback
// interface; those with loss are behind a token bucket of 60 Mbit/s.
func recorded() map[string]string {
	return map[string]string{
		"tcp-forward":      "tcp-stream",
		"tcp-reverse":      "tcp-stream:flows=2,direction=reverse",
		"tcp-both":         "tcp-stream:direction=both",
		"udp-both":         "udp-stream:rate=2000,size=1400,direction=both",
		"udp-forward-loss": "udp-stream:rate=8000,size=1400",
		"udp-reverse-loss": "udp-stream:rate=8000,size=1400,flows=2,direction=reverse",
		"udp-flows-loss":   "udp-stream:rate=24000,size=1400,flows=3",
		"tcp-flows-3.21":   "tcp-stream:flows=2",
		"udp-loss-3.21":    "udp-stream:rate=8000,size=1400",
	}
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func load(t testing.TB, name string) *output {
	t.Helper()
	out, err := parse(read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestForeignPeer checks that the output of a server that another client reached first is not used.
func TestForeignPeer(t *testing.T) {
	w := mustParse(t, "tcp-stream", time.Second, 0)
	c, err := newCommands(fakePair("127.0.0.1:5201", "127.0.0.1:5201", nil, nil), w)
	if err != nil {
		t.Fatal(err)
	}
	client, server := load(t, "tcp-forward.client.json"), load(t, "tcp-forward.server.json")
	server.Start.Cookie = "another"
	if _, err := measure(c, w, client, server); err == nil || !strings.Contains(err.Error(), "served another client") {
		t.Errorf("error %v", err)
	}
}

func TestRecorded(t *testing.T) {
	for name, text := range recorded() {
		t.Run(name, func(t *testing.T) {
			w := mustParse(t, text, time.Second, 0)
			c, err := newCommands(fakePair("127.0.0.1:5201", "127.0.0.1:5201", nil, nil), w)
			if err != nil {
				t.Fatal(err)
			}
			m, err := measure(c, w, load(t, name+".client.json"), load(t, name+".server.json"))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/"+name+".golden", describe(m))
		})
	}
}

func describe(m result.Measurement) string {
	var b strings.Builder
	for _, v := range m.Values {
		fmt.Fprintf(&b, "%s %.6g %s %s\n", v.Metric, v.Number, v.Unit, v.Better)
	}
	for _, s := range m.Series {
		fmt.Fprintf(&b, "series %s %s each %g s: %.4g\n", s.Name, s.Unit, s.Step, s.Values)
	}
	for _, f := range m.Facts {
		fmt.Fprintf(&b, "fact %s: %s\n", f.Name, f.Value)
	}
	for _, w := range m.Invalid {
		fmt.Fprintf(&b, "invalid: %s: %s\n", w.Code, w.Text)
	}
	for _, w := range m.Warnings {
		fmt.Fprintf(&b, "warning: %s: %s\n", w.Code, w.Text)
	}
	fmt.Fprintf(&b, "window %g s\n", m.Window)
	return b.String()
}

// TestReceiverCounts checks values that can be verified by hand: they are the receiver's, not the client's wrong ones.
func TestReceiverCounts(t *testing.T) {
	client, server := load(t, "udp-flows-loss.client.json"), load(t, "udp-flows-loss.server.json")
	w := mustParse(t, "udp-stream:rate=24000,size=1400,flows=3", time.Second, 0)
	c, _ := newCommands(fakePair("127.0.0.1:5201", "127.0.0.1:5201", nil, nil), w)
	m, err := measure(c, w, client, server)
	if err != nil {
		t.Fatal(err)
	}
	// The token bucket passes 60 Mbit/s, in which 1400 of 1442 bytes are payload.
	throughput, _ := result.Run{Values: m.Values}.Value("throughput")
	if math.Abs(throughput.Number/(60e6*1400/1442)-1) > 0.01 {
		t.Errorf("throughput is %g", throughput.Number)
	}
	loss, _ := result.Run{Values: m.Values}.Value("loss")
	if want := 1 - throughput.Number/(24000*1400*8); math.Abs(loss.Number-want) > 0.01 {
		t.Errorf("loss is %g, the bytes say %g", loss.Number, want)
	}
	if wrong := client.End.Received.Lost / client.End.Received.Packets; wrong < 1 {
		t.Errorf("this recording was to show that the client of 3.12 gets loss wrong, but it says %g", wrong)
	}
}

func TestGates(t *testing.T) {
	w := mustParse(t, "udp-stream:rate=8000,size=1400", time.Second, 0)
	c, _ := newCommands(fakePair("127.0.0.1:5201", "127.0.0.1:5201", nil, nil), w)
	for _, test := range []struct {
		spoil func(client, server *output)
		want  string
	}{
		{func(_, s *output) { s.End.Received.Seconds = 0.5 }, "window"},
		{func(_, s *output) { s.End.Received.Bytes = 0 }, "nothing arrived"},
		{func(_, s *output) { s.End.Received.Lost /= 2 }, "do not close"},
	} {
		client, server := load(t, "udp-forward-loss.client.json"), load(t, "udp-forward-loss.server.json")
		test.spoil(client, server)
		m, err := measure(c, w, client, server)
		if err != nil || !strings.Contains(strings.Join(result.Texts(m.Invalid), "\n"), test.want) {
			t.Errorf("wanted %q, got %v, %v", test.want, m.Invalid, err)
		}
	}
}

// TestRateMissed checks that a rate that the sender cannot reach is reported and does not make the run invalid.
func TestRateMissed(t *testing.T) {
	w := mustParse(t, "udp-stream:rate=10Gbit/s,size=1400", time.Second, 0)
	c, err := newCommands(fakePair("127.0.0.1:5201", "127.0.0.1:5201", nil, nil), w)
	if err != nil {
		t.Fatal(err)
	}
	m, err := measure(c, w, load(t, "udp-forward-loss.client.json"), load(t, "udp-forward-loss.server.json"))
	if err != nil {
		t.Fatal(err)
	}
	run := result.Run{Values: m.Values}
	sent, _ := run.Value("throughput-sent")
	received, _ := run.Value("throughput")
	if len(m.Invalid) > 0 || sent.Number < 85e6 || received.Number > 0.7*sent.Number {
		t.Errorf("sent %g, received %g, invalid for %v", sent.Number, received.Number, m.Invalid)
	}
	if len(m.Warnings) != 1 || m.Warnings[0].Code != result.RateMissed ||
		!strings.Contains(m.Warnings[0].Text, "of the 10.0 Gbit/s that were asked for") {
		t.Errorf("%+v", m.Warnings)
	}
}

func TestDoubts(t *testing.T) {
	w := netload.Spec{Kind: netload.TCPStream, Flows: 4, Direction: netload.Forward}
	for _, test := range []struct {
		client, server string
		cpu            float64 // per cent
		limited        string
		warnings       int
	}{
		{"iperf 3.12", "iperf 3.12", 50, "no", 1},
		{"iperf 3.16", "iperf 3.12", 50, "no", 1},
		{"iperf 3.16", "iperf 3.21", 300, "no", 0},
		{"iperf 3.16", "iperf 3.21", 399, "yes", 0},
		{"iperf 3.12", "iperf 3.12", 99, "yes", 1},
	} {
		var client, server output
		client.Start.Version, server.Start.Version = test.client, test.server
		client.End.CPU.Total = test.cpu
		m := &measurement{family.NewBuilder(nil)}
		m.warnings(w, &client, &server)
		if len(m.Warnings) != test.warnings || !strings.HasPrefix(m.Facts[0].Value, test.limited) {
			t.Errorf("%s to %s at %g %%: limited %s, %q", test.client, test.server, test.cpu, m.Facts[0].Value, m.Warnings)
		}
	}
}

func TestVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"iperf 3.12": false, "iperf 3.9": false, "iperf 3.1.3": false, "iperf 3.15-mt-beta1": false, "iperf 3.16": true,
		"iperf 3.17.1+": true, "iperf 3.21+": true, "iperf 4.0": true,
		"": false, "iperf": false, "iperf x.y": false, "iperf 3.": false,
	} {
		o := output{}
		o.Start.Version = text
		if o.threaded() != want {
			t.Errorf("%q: threaded is %v", text, !want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", "iperf3: parameter error - bad\n", "{",
		"{}", "[]", `{"start":1}`, `{"start":{"version":"iperf 3.12"},"end":[]`} {
		if _, err := parse([]byte(text)); !errors.Is(err, ErrOutput) {
			t.Errorf("%q: %v", text, err)
		}
	}
	// A warning before the JSON, and an error in it, are not errors of parse.
	out, err := parse([]byte("warning: this system does not support something\n" +
		`{"start":{},"error":"unable to connect to server: Connection refused"}`))
	if err != nil || out.Error == "" {
		t.Errorf("%+v, %v", out, err)
	}
	// Before 3.12 there are no sums of each side for UDP.
	old := load(t, "udp-forward-loss.server.json")
	old.Start.Version, old.End.Received = "iperf 3.9", nil
	w := mustParse(t, "udp-stream:rate=8000,size=1400", time.Second, 0)
	_, err = measure(commands{size: 1400, window: time.Second, step: time.Second},
		w, load(t, "udp-forward-loss.client.json"), old)
	if !errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(), "3.9") {
		t.Errorf("iperf 3.9: %v", err)
	}
}

// short returns a recording without most of its intervals and white space: small seeds mutate better.
func short(f *testing.F, name string) []byte {
	var out map[string]any
	if err := json.Unmarshal(read(f, name), &out); err != nil {
		f.Fatal(err)
	}
	out["intervals"] = out["intervals"].([]any)[:2]
	delete(out["start"].(map[string]any), "connected")
	text, err := json.Marshal(out)
	if err != nil {
		f.Fatal(err)
	}
	return text
}

// FuzzMeasure checks that any two outputs give an error or a measurement of finite numbers.
func FuzzMeasure(f *testing.F) {
	for name := range recorded() {
		f.Add(short(f, name+".client.json"), short(f, name+".server.json"), uint8(len(name)))
	}
	f.Add([]byte(`{"start":{"version":"iperf 3.21","test_start":{"gso":1}},"intervals":[{}],
		"end":{"sum_sent":{"seconds":1,"bytes":1e17},
		"sum_received":{"seconds":1e-300,"bytes":1e17,"packets":18446744073709544478}}}`),
		[]byte(`{"start":{"version":"iperf 3"},
		"end":{"sum_received":{"seconds":1e-9,"bytes":1},"cpu_utilization_percent":{"host_total":-1}}}`), uint8(3))
	f.Fuzz(func(t *testing.T, clientText, serverText []byte, choice uint8) {
		client, err := parse(clientText)
		if err != nil {
			return
		}
		server, err := parse(serverText)
		if err != nil {
			return
		}
		w := netload.Spec{Kind: netload.UDPStream, Rate: 8000, Size: 1400, Duration: time.Second}
		if choice&1 != 0 {
			w = netload.Spec{Kind: netload.TCPStream, Duration: time.Second}
		}
		w.Direction = []netload.Direction{netload.Forward, netload.Reverse, netload.Both}[choice>>1%3]
		w, _ = w.Resolved()
		c, err := newCommands(fakePair("127.0.0.1:5201", "127.0.0.1:5201", nil, nil), w)
		if err != nil {
			t.Fatal(err)
		}
		m, err := measure(c, w, &client, &server)
		if err != nil {
			return
		}
		for _, v := range m.Values {
			if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) || v.Number < 0 {
				t.Errorf("%s is %g", v.Metric, v.Number)
			}
		}
		for _, s := range m.Series {
			for _, v := range s.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("series has %g", v)
				}
			}
		}
	})
}
