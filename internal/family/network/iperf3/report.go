package iperf3

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Report is a test according to the output of one side.
type Report struct {
	Protocol string // TCP, UDP or SCTP, as iperf3 writes it
	// Workload describes a TCP or UDP test. A pace is the sum over all flows: a Rate, or a BitRate where the size of a
	// datagram is that of the path.
	Workload netload.Spec
	Amount   string    // "bytes=10240" or "blocks=10" of a test of a fixed amount (-n, -k); empty: of a time
	Start    time.Time // zero: unknown
	Host     string    // machine that wrote it, as printed by uname; empty: unknown
	result.Measurement
}

// ReadReport reads the output of -J of a client, or of a server that received. A test that ended in an error is an
// invalid measurement with that reason. Errors are about text that is not such an output, and wrap [ErrOutput].
//
// A client knows what its server received from the server's count at the end, which in some versions is wrong with
// --omit; then there is a warning. With --get-server-output the server's own output is used. The validity checks of
// [Tool] do not apply, because they are about how it runs iperf3.
func ReadReport(text []byte) (Report, error) {
	own, err := parse(text)
	if err != nil {
		return Report{}, err
	}
	r := Report{Protocol: own.Start.TestStart.Protocol, Workload: own.workload(), Amount: own.amount(),
		Host: own.Start.System}
	if s := own.Start.Timestamp.Seconds; s > 0 && s < maxEpoch {
		r.Start = time.Unix(int64(s), 0).UTC()
	}
	if own.Error != "" {
		text := "iperf3 says: " + strings.TrimPrefix(own.Error, "error - ")
		r.Invalid = []result.Warning{{Code: result.ToolReports, Text: text}}
		r.Facts = []result.Fact{{Name: "tool.version", Value: family.OrUnknown(own.Start.Version)}}
		return r, nil
	}
	r.Measurement, err = own.measureAlone(r.Workload)
	return r, err
}

// maxEpoch is the end of the year 9999 in seconds since 1970, the last time that JSON can represent.
const maxEpoch = 253402300800

// workload returns the workload of the test, as far as the output describes it.
func (o output) workload() netload.Spec {
	t := o.Start.TestStart
	w := netload.Spec{Kind: netload.TCPStream, Flows: toInt(t.Flows), Size: toInt(t.Size), Direction: netload.Forward,
		Duration: toDuration(t.Duration), Warmup: toDuration(t.Omit)}
	switch {
	case o.End.SentBack != nil:
		w.Direction = netload.Both
	case t.Reverse != 0:
		w.Direction = netload.Reverse
	}
	if t.Protocol != "UDP" {
		return w
	}
	w.Kind = netload.UDPUnpaced
	w.Offload = t.GSO != 0 || t.GRO != 0
	rate := cmp.Or(t.Rate, o.Start.Rate) // start.target_bitrate before 3.13
	if rate > 0 && rate < 1e18 && w.Size > 0 {
		w.Kind, rate = netload.UDPStream, rate*float64(max(w.Flows, 1)) // -b is the rate of each flow
		if SizeOfPath(w.Size) {
			w.BitRate = rate
		} else {
			w.Rate = Datagrams(rate, w.Size)
		}
	}
	return w
}

// amount returns the amount of a test that was not for a time; empty if it was.
func (o output) amount() string {
	switch t := o.Start.TestStart; {
	case t.Bytes > 0:
		return "bytes=" + strconv.FormatFloat(t.Bytes, 'f', -1, 64)
	case t.Blocks > 0:
		return "blocks=" + strconv.FormatFloat(t.Blocks, 'f', -1, 64)
	}
	return ""
}

// SizeOfPath reports whether the size of a datagram, in bytes, is one that follows from the MTU of the path: iperf3
// without -l takes the segment size of its TCP connection, which is the MTU less 52 bytes of headers (72 with IPv6), or
// else 1460. MTUs are whole tens (1450, 8950), or one more on AWS (9001); 1472 fills a datagram of 1500 bytes. A power
// of two is a user's choice.
func SizeOfPath(size int) bool {
	return size == 1460 || size == 1472 || size >= 1280-72 && (size+52)%10 <= 1 && size&(size-1) != 0
}

// Datagrams returns how many datagrams per second, of size bytes each, make a rate in bit/s; 0 for 0. It is rounded to
// six significant digits, since rates are not set more precisely.
func Datagrams(bits float64, size int) float64 {
	v := bits / 8 / float64(size)
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

// toInt converts a number of the output to int; 0 if it is out of range.
func toInt(v float64) int {
	if v >= 0 && v < math.MaxInt32 {
		return int(v)
	}
	return 0
}

// toDuration converts seconds of the output; 0 if they are out of range.
func toDuration(v float64) time.Duration {
	if v >= 0 && v < 1e6 {
		return time.Duration(v * float64(time.Second))
	}
	return 0
}

// measureAlone returns the measurement from one side's output.
func (o *output) measureAlone(w netload.Spec) (result.Measurement, error) {
	client, server := o, o.serverOutput()
	if o.Start.Accepted != nil {
		if w.Direction != netload.Forward {
			return result.Measurement{}, fmt.Errorf("%w of a client: it is a server's, of a test in which it sent, "+
				"and a sender does not know what arrived; take the client's", ErrOutput)
		}
		client, server = nil, o
	}
	halves, err := o.halves(w, client, server)
	if err != nil {
		return result.Measurement{}, err
	}
	m := &measurement{family.NewBuilder(slices.Concat(metricsOf(w.Kind), metric.Of("", metric.ThroughputSent)))}
	m.Window = halves[0].received.Seconds
	c := commands{
		window: w.Duration, warmup: w.Warmup, size: max(w.Size, 1), clientCPU: result.Unknown, serverCPU: result.Unknown,
	}
	if err := m.work(c, w, halves); err != nil {
		return m.Measurement, err
	}
	m.Facts = o.facts(w)
	if client == nil {
		// The server knows neither what was sent nor the CPU time of the client.
		m.Values = slices.DeleteFunc(m.Values, func(v result.Value) bool {
			return v.Metric == metric.Offered || v.Metric == metric.ThroughputSent
		})
		return m.Measurement, nil
	}
	m.cost(halves, client, server)
	m.tcpInfo(w, halves)
	m.pace(c, w, halves)
	m.warnings(w, client, server)
	if o.ServerOutput == nil {
		m.warnUnverified(o, w)
	}
	return m.Measurement, nil
}

// serverOutput returns the server's own output if the client has it, else the server as far as the client knows it.
func (o *output) serverOutput() *output {
	if o.ServerOutput != nil && o.ServerOutput.Start.Version != "" {
		return o.ServerOutput
	}
	server := *o // assumes the same version
	server.End.CPU.Total = o.End.CPU.Remote
	return &server
}

// halves returns the directions of the test. With a server's output, client is nil, and the sums of the sender are
// those of the receiver.
func (o *output) halves(w netload.Spec, client, server *output) ([]directionResult, error) {
	if client == nil {
		if o.End.Received == nil {
			return nil, fmt.Errorf("%w: it has no end.sum_received", ErrOutput)
		}
		h := directionResult{sender: o, receiver: o, sent: o.End.Received, received: o.End.Received}
		return []directionResult{h}, checkSums([]directionResult{h})
	}
	if client.End.Received == nil && client.End.Sum != nil && w.Kind.Datagrams() {
		arrived := *client.End.Sum
		if arrived.Packets > 0 {
			arrived.Bytes *= 1 - arrived.Lost/arrived.Packets
		}
		client.End.Sent, server.End.Sent = client.End.Sum, client.End.Sum
		client.End.Received, server.End.Received = &arrived, &arrived
	}
	return split(w, client, server)
}

// facts returns the facts of a report, which are fewer than those of a run by this tool.
func (o *output) facts(w netload.Spec) []result.Fact {
	facts := []result.Fact{
		{Name: "tool.version", Value: family.OrUnknown(o.Start.Version)},
		{Name: "tool.window", Value: w.Duration.String()}, {Name: "tool.warmup", Value: w.Warmup.String()},
	}
	if w.Kind == netload.TCPStream {
		congestion := cmp.Or(o.End.Congestion, o.End.CongestionReceiver)
		return append(facts, result.Fact{Name: "tcp.congestion", Value: family.OrUnknown(congestion)})
	}
	if w.Kind == netload.UDPUnpaced {
		facts = append(facts, network.Unpaced)
	}
	return facts
}

// warnUnverified adds warnings about values that a client knows only from its server.
func (m *measurement) warnUnverified(o *output, w netload.Spec) {
	if w.Kind.Datagrams() && w.Direction != netload.Reverse && w.Warmup > 0 {
		m.Warn(result.LossOfWarmup, "%s with --omit tells the client a loss that may include the warm-up; "+
			"the server's own output has it right", family.OrUnknown(o.Start.Version))
	}
	if o.End.Sent == o.End.Sum && w.Kind.Datagrams() {
		m.Warn(result.DerivedFromPeer, "this version prints no sum of what arrived; it is taken from the datagrams "+
			"that were lost")
	}
}
