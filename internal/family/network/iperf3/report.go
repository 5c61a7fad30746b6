package iperf3

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Report is a test as one side's output tells of it, where the other side's is not at hand.
type Report struct {
	Protocol string       // TCP, UDP or SCTP, as iperf3 writes it
	Workload network.Spec // of a TCP or UDP test; Rate is that of all flows, 0 if unpaced
	Start    time.Time    // zero if unknown
	Host     string       // the machine that wrote it, as uname prints it; empty if unknown
	result.Measurement
}

// ReadReport reads the output of -J of a client, or of a server to which the client sent. A
// test that ended in an error is a measurement that is invalid for that reason; the error is about text
// that is not such an output, and Is [ErrOutput].
//
// A client knows what its server received from the server's own count at the end, which in some
// versions is wrong with --omit: the warnings say so. With --get-server-output the server's own
// output is used. The gates of [Tool] do not apply: they are about how it runs iperf3.
func ReadReport(text []byte) (Report, error) {
	own, err := parse(text)
	if err != nil {
		return Report{}, err
	}
	r := Report{Protocol: own.Start.TestStart.Protocol, Workload: own.workload(), Host: own.Start.System}
	if s := own.Start.Timestamp.Seconds; s > 0 && s < maxEpoch {
		r.Start = time.Unix(int64(s), 0).UTC()
	}
	if own.Error != "" {
		text := "iperf3 says: " + strings.TrimPrefix(own.Error, "error - ")
		r.Invalid = []result.Warning{{Code: result.ToolReports, Text: text}}
		r.Facts = []result.Fact{{Name: "tool.version", Value: family.OrUnknown(own.Start.Version)}}
		return r, nil
	}
	r.Measurement, err = own.alone(r.Workload)
	return r, err
}

// maxEpoch is the last second that a time of JSON can be of: the end of the year 9999.
const maxEpoch = 253402300800

// workload is what the test was, as far as the output tells it.
func (o output) workload() network.Spec {
	t := o.Start.TestStart
	w := network.Spec{Kind: network.TCPStream, Flows: whole(t.Flows), Size: whole(t.Size), Direction: network.Forward,
		Duration: seconds64(t.Duration), Warmup: seconds64(t.Omit)}
	switch {
	case o.End.SentBack != nil:
		w.Direction = network.Both
	case t.Reverse != 0:
		w.Direction = network.Reverse
	}
	if t.Protocol != "UDP" {
		return w
	}
	w.Kind = network.UDPUnpaced
	w.Offload = t.GSO != 0 || t.GRO != 0
	rate := cmp.Or(t.Rate, o.Start.Rate) // the latter before 3.13
	if rate > 0 && rate < 1e18 && w.Size > 0 {
		// -b is for each flow.
		w.Kind, w.Rate = network.UDPStream, Datagrams(rate*float64(max(w.Flows, 1)), w.Size)
	}
	return w
}

// Datagrams is how many of a size, in bytes, are per second in so many bits per second; 0 in none. It has six
// significant digits, since no rate is set to more.
func Datagrams(bits float64, size int) float64 {
	v := bits / 8 / float64(size)
	if v == 0 {
		return 0
	}
	scale := math.Pow(10, 5-math.Floor(math.Log10(v)))
	return math.Round(v*scale) / scale
}

func whole(v float64) int {
	if v >= 0 && v < math.MaxInt32 {
		return int(v)
	}
	return 0
}

func seconds64(v float64) time.Duration {
	if v >= 0 && v < 1e6 {
		return time.Duration(v * float64(time.Second))
	}
	return 0
}

// alone makes a measurement of one side's output.
func (o *output) alone(w network.Spec) (result.Measurement, error) {
	client, server := o, o.other()
	if o.Start.Accepted != nil {
		if w.Direction != network.Forward {
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
		// What was sent is not known, nor what the client's process used.
		m.Values = slices.DeleteFunc(m.Values, func(v result.Value) bool {
			return v.Metric == metric.Offered || v.Metric == metric.ThroughputSent
		})
		return m.Measurement, nil
	}
	m.cost(halves, client, server)
	m.tcpInfo(w, halves)
	m.pace(c, w, halves)
	m.doubts(w, client, server)
	if o.ServerOutput == nil {
		m.hearsay(o, w)
	}
	return m.Measurement, nil
}

// other is the server as the client saw it, or by its own output where the client asked for that.
func (o *output) other() *output {
	if o.ServerOutput != nil && o.ServerOutput.Start.Version != "" {
		return o.ServerOutput
	}
	seen := *o // of the same version, for want of anything better
	seen.End.CPU.Total = o.End.CPU.Remote
	return &seen
}

// halves are the directions of the test; what a server does not know of its client is as it received it.
func (o *output) halves(w network.Spec, client, server *output) ([]half, error) {
	if client == nil {
		if o.End.Received == nil {
			return nil, fmt.Errorf("%w: it has no end.sum_received", ErrOutput)
		}
		h := half{sender: o, receiver: o, sent: o.End.Received, received: o.End.Received}
		return []half{h}, checkSums([]half{h})
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

// facts of a report: what newCommands would know of a run of ours is unknown here.
func (o *output) facts(w network.Spec) []result.Fact {
	facts := []result.Fact{
		{Name: "tool.version", Value: family.OrUnknown(o.Start.Version)},
		{Name: "tool.window", Value: w.Duration.String()}, {Name: "tool.warmup", Value: w.Warmup.String()},
	}
	if w.Kind == network.TCPStream {
		congestion := cmp.Or(o.End.Congestion, o.End.CongestionReceiver)
		return append(facts, result.Fact{Name: "tcp.congestion", Value: family.OrUnknown(congestion)})
	}
	if w.Kind == network.UDPUnpaced {
		facts = append(facts, network.Unpaced)
	}
	return facts
}

// hearsay warns of what a client cannot know for itself.
func (m *measurement) hearsay(o *output, w network.Spec) {
	if w.Kind.Datagrams() && w.Direction != network.Reverse && w.Warmup > 0 {
		m.Warn(result.LossOfWarmup, "%s with --omit tells the client a loss that may include the warm-up; "+
			"the server's own output has it right", family.OrUnknown(o.Start.Version))
	}
	if o.End.Sent == o.End.Sum && w.Kind.Datagrams() {
		m.Warn(result.Hearsay, "this version prints no sum of what arrived; it is taken from the datagrams that were lost")
	}
}
