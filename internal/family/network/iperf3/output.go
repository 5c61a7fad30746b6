package iperf3

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family"
)

// ErrOutput is what every error about the text that iperf3 printed is.
var ErrOutput = errors.New("not the JSON of iperf3")

// output is what is read of iperf3's -J, as in 3.12 to 3.21. Numbers are float64 throughout: some that
// nobody should use are beyond any integer (an unsigned count that went below zero).
type output struct {
	Start struct {
		Version   string `json:"version"`
		System    string `json:"system_info"`
		Cookie    string `json:"cookie"` // that a client draws for a test, and tells its server
		Timestamp struct {
			Seconds float64 `json:"timesecs"`
		} `json:"timestamp"`
		Accepted  *struct{} `json:"accepted_connection"` // of a server
		Rate      float64   `json:"target_bitrate"`      // bit/s of a flow
		TestStart struct {
			Protocol string  `json:"protocol"`
			Flows    float64 `json:"num_streams"`
			Size     float64 `json:"blksize"`
			Omit     float64 `json:"omit"`     // seconds
			Duration float64 `json:"duration"` // seconds
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
		// Each is true only in the output of the side it is about; "sum" is a mixture of both.
		Sum          *sum `json:"sum"`
		Sent         *sum `json:"sum_sent"`
		Received     *sum `json:"sum_received"`
		SentBack     *sum `json:"sum_sent_bidir_reverse"`
		ReceivedBack *sum `json:"sum_received_bidir_reverse"`
		CPU          struct {
			Total  float64 `json:"host_total"`   // per cent of one CPU, of this side's process
			Remote float64 `json:"remote_total"` // of the other side's, which a server is not told
		} `json:"cpu_utilization_percent"`
		Congestion         string `json:"sender_tcp_congestion"`
		CongestionReceiver string `json:"receiver_tcp_congestion"`
	} `json:"end"`
	ServerOutput *output `json:"server_output_json"` // with --get-server-output
	Error        string  `json:"error"`
}

// A sum is over all flows of a direction.
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

// An interval is one step; streams that send say what TCP_INFO said.
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

// parse reads what iperf3 -J printed; some versions print a warning before it. An error that iperf3
// reports is not an error of parse.
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

// version takes "iperf 3.12" or "iperf 3.17.1+" apart; ok is false where that fails.
func version(text string) (major, minor int, ok bool) {
	n, _ := fmt.Sscanf(text, "iperf %d.%d", &major, &minor)
	return major, minor, n == 2
}

// threaded says whether this version gives every flow a thread of its own: since 3.16.
func (o output) threaded() bool {
	major, minor, ok := version(o.Start.Version)
	return ok && (major > 3 || major == 3 && minor >= 16)
}
