package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family"
)

// ErrOutput is wrapped by every error about the text that iperf3 printed.
var ErrOutput = errors.New("not the JSON of iperf3")

// output holds the parts of iperf3's -J that are used, as in 3.12 to 3.21. Numbers are float64 because some exceed
// every integer type (an unsigned count that went below zero).
type output struct {
	Start struct {
		Version   string `json:"version"`
		System    string `json:"system_info"`
		Cookie    string `json:"cookie"` // drawn by the client for each test, and sent to the server
		Timestamp struct {
			Seconds float64 `json:"timesecs"`
		} `json:"timestamp"`
		Accepted  *struct{} `json:"accepted_connection"` // only of a server
		Rate      float64   `json:"target_bitrate"`      // bit/s of a flow
		TestStart struct {
			Protocol string  `json:"protocol"`
			Flows    float64 `json:"num_streams"`
			Size     float64 `json:"blksize"`
			Omit     float64 `json:"omit"`     // seconds
			Duration float64 `json:"duration"` // seconds
			Bytes    float64 `json:"bytes"`    // to send, if not for a time
			Blocks   float64 `json:"blocks"`
			Reverse  float64 `json:"reverse"`
			Rate     float64 `json:"target_bitrate"`
			GSO      float64 `json:"gso"` // since 3.21
			GRO      float64 `json:"gro"`
		} `json:"test_start"`
	} `json:"start"`
	Intervals []interval `json:"intervals"`
	End       struct {
		Streams []struct {
			UDP *struct {
				OutOfOrder float64 `json:"out_of_order"`
				Sender     bool    `json:"sender"`
			} `json:"udp"`
		} `json:"streams"`
		// Each of these is reliable only in the output of the side that it is about; "sum" mixes both.
		Sum          *sum `json:"sum"`
		Sent         *sum `json:"sum_sent"`
		Received     *sum `json:"sum_received"`
		SentBack     *sum `json:"sum_sent_bidir_reverse"`
		ReceivedBack *sum `json:"sum_received_bidir_reverse"`
		CPU          struct {
			Total  float64 `json:"host_total"`   // per cent of one CPU, of this side's process
			Remote float64 `json:"remote_total"` // the same of the other side's process; a server does not know it
		} `json:"cpu_utilization_percent"`
		Congestion         string `json:"sender_tcp_congestion"`
		CongestionReceiver string `json:"receiver_tcp_congestion"`
	} `json:"end"`
	ServerOutput *output `json:"server_output_json"` // with --get-server-output
	Error        string  `json:"error"`
}

// A sum covers all flows of a direction.
type sum struct {
	Seconds     float64  `json:"seconds"`
	Bytes       float64  `json:"bytes"`
	Bits        float64  `json:"bits_per_second"`
	Retransmits *float64 `json:"retransmits"`
	Jitter      float64  `json:"jitter_ms"`
	Lost        float64  `json:"lost_packets"`
	Packets     float64  `json:"packets"`
	Omitted     bool     `json:"omitted"`
}

// An interval is one step. The streams that send have TCP_INFO.
type interval struct {
	Streams []struct {
		RTT    float64 `json:"rtt"`      // µs
		Var    float64 `json:"rttvar"`   // µs
		Cwnd   float64 `json:"snd_cwnd"` // bytes
		PMTU   float64 `json:"pmtu"`
		Sender bool    `json:"sender"`
	} `json:"streams"`
	Sum     sum `json:"sum"`
	SumBack sum `json:"sum_bidir_reverse"`
}

// parse reads the output of iperf3 -J, which some versions precede with a warning. An error that iperf3 reports is in
// the output and not an error of parse.
func parse(text []byte) (output, error) {
	at := bytes.IndexByte(text, '{')
	if at < 0 {
		return output{}, fmt.Errorf("%w: %s", ErrOutput, family.Excerpt(text))
	}
	var out output
	if err := json.NewDecoder(bytes.NewReader(text[at:])).Decode(&out); err != nil {
		return output{}, fmt.Errorf("%w: %w: %s", ErrOutput, err, family.Excerpt(text))
	}
	if out.Start.Version == "" && out.Error == "" {
		return output{}, fmt.Errorf("%w: it has no start.version", ErrOutput)
	}
	return out, nil
}

// version parses "iperf 3.12" or "iperf 3.17.1+".
func version(text string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(text, "iperf %d.%d", &major, &minor)
	return major, minor, n == 2
}

// threaded reports whether this version has a thread for every flow; versions from 3.16 have.
func (o output) threaded() bool {
	major, minor, ok := version(o.Start.Version)
	return ok && (major > 3 || major == 3 && minor >= 16)
}
