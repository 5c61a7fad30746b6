package iperf3

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// TestReportAgreesWithBothSides checks that a client that knows as much as both sides together gives the measurement of
// the tool.
func TestReportAgreesWithBothSides(t *testing.T) {
	for _, c := range []struct {
		name     string
		workload string
	}{
		{"tcp-forward", "tcp-stream"}, {"tcp-reverse", "tcp-stream:flows=2,direction=reverse"},
		{"tcp-both", "tcp-stream:direction=both"},
		{"udp-forward-loss", "udp-stream:size=1400,rate=8000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := sampleOutput(t, c.name+".client.json"), sampleOutput(t, c.name+".server.json")
			report, err := ReadReport(client)
			if err != nil {
				t.Fatal(err)
			}
			if got := report.Workload.Name(); got != c.workload {
				t.Errorf("workload %s, wanted %s", got, c.workload)
			}
			if report.Start.IsZero() || report.Protocol != strings.ToUpper(c.name[:3]) || len(report.Invalid) > 0 {
				t.Errorf("%+v", report)
			}
			other, err := parse(server)
			if err != nil {
				t.Fatal(err)
			}
			var throughput float64
			for _, s := range []*sum{other.End.Received, other.End.ReceivedBack} {
				if s != nil {
					throughput += 8 * s.Bytes / s.Seconds
				}
			}
			if c.name != "tcp-forward" && c.name != "udp-forward-loss" {
				return // the server does not know what the client received
			}
			for _, v := range report.Values {
				if v.Metric == "throughput" && math.Abs(v.Number/throughput-1) > 1e-3 {
					t.Errorf("throughput %g, the server says %g", v.Number, throughput)
				}
			}
		})
	}
}

func sampleOutput(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReportOfAServer(t *testing.T) {
	report, err := ReadReport(sampleOutput(t, "udp-forward-loss.server.json"))
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]float64{}
	for _, v := range report.Values {
		metrics[v.Metric] = v.Number
	}
	if _, has := metrics["offered"]; has || math.Abs(metrics["loss"]-0.349875) > 1e-9 || metrics["throughput"] < 58e6 {
		t.Errorf("%v", metrics)
	}
	if _, err := ReadReport(sampleOutput(t, "tcp-reverse.server.json")); !errors.Is(err, ErrOutput) ||
		!strings.Contains(err.Error(), "take the client's") {
		t.Errorf("error %v", err)
	}
}

func TestReportOfAnError(t *testing.T) {
	report, err := ReadReport([]byte(
		`{"start":{"version":"iperf 3.12"},"error":"error - unable to connect to server: Connection refused"}`))
	if err != nil || len(report.Invalid) != 1 || report.Invalid[0].Text != "iperf3 says: unable to connect to server: "+
		"Connection refused" || len(report.Values) > 0 {
		t.Errorf("%+v, error %v", report, err)
	}
}

func TestReportUsesTheServersOwnOutput(t *testing.T) {
	var client map[string]json.RawMessage
	if err := json.Unmarshal(sampleOutput(t, "udp-forward-loss.client.json"), &client); err != nil {
		t.Fatal(err)
	}
	client["server_output_json"] = sampleOutput(t, "udp-forward-loss.server.json")
	text, err := json.Marshal(client)
	if err != nil {
		t.Fatal(err)
	}
	report, err := ReadReport(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Values {
		// The client of 3.12 has 69 %, which includes the warm-up.
		if v.Metric == "loss" && math.Abs(v.Number-0.349875) > 1e-9 {
			t.Errorf("loss %g", v.Number)
		}
	}
	if len(report.Warnings) > 0 {
		t.Errorf("warnings %q", report.Warnings)
	}
}

func TestUnpacedReportHasNoRate(t *testing.T) {
	report, err := ReadReport([]byte(`{"start":{"version":"iperf 3.12","target_bitrate":0,
		"test_start":{"protocol":"UDP","num_streams":1,"blksize":1400,"duration":1}},
"end":{"sum_sent":{"seconds":1,"bytes":10,"packets":1},"sum_received":{"seconds":1,"bytes":10,"packets":1}}}`))
	if err != nil || report.Workload.Kind != netload.UDPUnpaced || report.Workload.Rate != 0 {
		t.Errorf("%+v, error %v", report, err)
	}
}

// TestSizeOfPath tells sizes that iperf3 takes from the MTU from those that people choose.
func TestSizeOfPath(t *testing.T) {
	for _, size := range []int{1448, 1398, 1408, 1368, 1460, 1472, 8948, 8898, 8949, 8899} {
		if !SizeOfPath(size) {
			t.Errorf("%d is of a path", size)
		}
	}
	for _, size := range []int{0, 16, 64, 512, 1000, 1024, 1200, 1300, 1400, 1450, 1470, 1500, 2048, 8192, 8900, 32768,
		65507} {
		if SizeOfPath(size) {
			t.Errorf("%d is a choice", size)
		}
	}
}
