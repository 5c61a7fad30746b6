package importer

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
)

// TestConsole checks that pasted output of both tools is found with the line of its command, and text about them is
// not.
func TestConsole(t *testing.T) {
	found, errs := Console("page", strings.Split(`We ran iperf3 and netperf -H is not what this is.
$ netperf -t TCP_CRR -H server -l 60 -- -r 1024
$ iperf3 -c server -P 4
[SUM]   0.00-30.00  sec  26.6 GBytes  7.61 Gbits/sec  9253             sender
[SUM]   0.00-30.00  sec  26.5 GBytes  7.60 Gbits/sec                   receiver
$ netperf -H server -t TCP_RR -l 30 -- -r 64,1400 -O mean_latency,transaction_rate
Mean         Transaction
Latency      Rate
Microseconds Tran/s
164.91       6056.582`, "\n"), 1)
	if len(errs) > 0 || len(found) != 2 {
		t.Fatalf("%+v, %v", found, errs)
	}
	for i, want := range []struct {
		line                   int
		workload, tool, metric string
		number, window         float64
	}{
		{3, "tcp-stream:flows=4", "iperf3", "throughput", 7.60e9, 30},
		{6, "tcp-rr:request=64,response=1400", "netperf", "mean", 164.91e-6, 30},
	} {
		got := found[i]
		v, _ := result.Run{Values: got.Values}.Value(want.metric)
		if got.Line != want.line || got.Workload != want.workload || got.Tool != want.tool || got.Window != want.window ||
			math.Abs(v.Number/want.number-1) > 1e-9 {
			t.Errorf("%+v, wanted %+v", got, want)
		}
	}
}

func TestOption(t *testing.T) {
	for _, c := range []struct {
		args, names, want string
	}{
		{"-c a -P 4", "-P --parallel", "4"}, {"-c a -P4", "-P --parallel", "4"}, {"--parallel=4", "-P --parallel", "4"},
		{"--parallel 4", "-P --parallel", "4"}, {"-c a", "-P", ""}, {"-P", "-P", ""}, {"--bidir -b 1G", "-b --bitrate", "1G"},
		{"--bitrate-x 5", "--bitrate", ""},
	} {
		if got := option(strings.Fields(c.args), strings.Fields(c.names)...); got != c.want {
			t.Errorf("%s of %q is %q, wanted %q", c.names, c.args, got, c.want)
		}
	}
}

func TestScaled(t *testing.T) {
	for text, want := range map[string]float64{
		"10G": 1e10, "7.61M": 7.61e6, "5k": 5e3, "12": 12, "": 0, "G": 0, "x": 0, "-3": 0, "1e30": 0, "nan": 0, "infG": 0,
	} {
		if got := parseScaled(text, 1000); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%q is %g, wanted %g", text, got, want)
		}
	}
	if got := parseScaled("16K", 1024); got != 16384 {
		t.Errorf("16K is %g bytes", got)
	}
}

// FuzzConsole checks that any text gives errors with a place, or finite values with the number of a line.
func FuzzConsole(f *testing.F) {
	for _, file := range []string{"iperf3/console.txt", "netperf/console.txt", "netperf/tcp-rr-O.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
		f.Add(string(data[:len(data)/2]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		found, errs := Console("page", lines, 1)
		for _, err := range errs {
			if !errors.Is(err, ErrFormat) || !strings.HasPrefix(err.Error(), "page") {
				t.Errorf("error %q", err)
			}
		}
		for _, p := range found {
			empty := len(p.Values) == 0 && len(p.Invalid) == 0
			if p.Line < 1 || p.Line > len(lines) || empty || !(p.Window >= 0 && p.Window <= largest) {
				t.Errorf("%+v", p)
			}
			for _, v := range p.Values {
				if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
					t.Errorf("%s is %v", v.Metric, v.Number)
				}
			}
		}
	})
}
