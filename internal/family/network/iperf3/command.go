package iperf3

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
)

// fineLines is the largest number of interval lines, one per flow and step, for which a series has steps of 100 ms.
const fineLines = 20000

// commands holds the two command lines of a run and the values that they use.
type commands struct {
	client, server []string
	window, warmup time.Duration // whole seconds
	step           time.Duration // of the series
	size           int           // bytes per send
	clientCPU      string        // argument of -A, or "any"
	serverCPU      string
}

// newCommands returns the command lines of a workload. It is pure.
func newCommands(p host.Pair, w netload.Spec) (commands, error) {
	size := payload(p, w)
	// iperf3 would read -t 0.5 as 0, which means endless.
	c := commands{window: max(wholeSeconds(w.Duration), time.Second), warmup: wholeSeconds(w.Warmup), size: size}
	c.step = step(c.window+c.warmup, w)
	interval := strconv.FormatFloat(c.step.Seconds(), 'f', -1, 64)

	c.server = []string{"iperf3", "-s", "-1", "-J", "-p", port(p.Listen.Port()), "-i", interval}
	if a := p.Listen.Addr(); a.IsValid() && !a.IsUnspecified() {
		c.server = append(c.server, "-B", a.String())
	}
	c.client = []string{"iperf3", "-c", p.Dial.Addr().String(), "-J", "-p", port(p.Dial.Port()), "-i", interval,
		"--connect-timeout", "3000", "-t", seconds(c.window), "-l", strconv.Itoa(size), "-P", strconv.Itoa(w.Flows)}
	if c.warmup > 0 {
		c.client = append(c.client, "-O", seconds(c.warmup))
	}
	c.client = append(c.client, direction(w.Direction)...)
	if w.MSS > 0 {
		c.client = append(c.client, "-M", strconv.Itoa(w.MSS))
	}
	if w.Buffer > 0 {
		c.client = append(c.client, "-w", strconv.Itoa(w.Buffer)) // the client passes it to the server
	}
	if w.Congestion != "" {
		c.client = append(c.client, "-C", w.Congestion)
	}
	switch w.Kind {
	case netload.UDPUnpaced:
		c.client = append(c.client, "-u", "-b", "0")
	case netload.UDPStream:
		rate, err := bitrate(w, size)
		if err != nil {
			return commands{}, err
		}
		c.client = append(c.client, "-u", "-b", rate)
	case netload.TCPStream:
		if w.MaxRate > 0 {
			c.client = append(c.client, "-b", strconv.FormatFloat(math.Floor(w.MaxRate/float64(w.Flows)), 'f', 0, 64))
		}
	}
	c.pin(p, w)
	return c, nil
}

// pin adds -A, which pins iperf3 to one CPU, with the threads of all flows. With several CPUs to choose from, it is
// therefore used for a single flow only.
func (c *commands) pin(p host.Pair, w netload.Spec) {
	to := func(cpus []int) (args []string, name string) {
		if len(cpus) == 1 || len(cpus) > 1 && w.Flows == 1 {
			cpu := strconv.Itoa(cpus[0])
			return []string{"-A", cpu}, cpu
		}
		return nil, "any"
	}
	var args []string
	args, c.clientCPU = to(p.Client.CPUs())
	c.client = append(c.client, args...)
	args, c.serverCPU = to(p.Server.CPUs())
	c.server = append(c.server, args...)
}

// payload returns the size of a send in bytes: that of the workload, or what fills the path's MTU.
func payload(p host.Pair, w netload.Spec) int {
	if w.Size > 0 {
		return w.Size
	}
	if w.Kind == netload.TCPStream {
		return netload.DefaultStreamSize
	}
	return network.Datagram(p.MTU, p.Dial.Addr(), minLength)
}

// bitrate returns the value of -b, the bits of payload per second of each flow; the workload's rate is datagrams per
// second of all flows. It is never 0, which would be unpaced.
func bitrate(w netload.Spec, size int) (string, error) {
	bits := math.Round(w.Sized(size).Rate * float64(size) * 8 / float64(w.Flows))
	if bits < 1 || bits > 1e15 {
		return "", result.NotSupported(fmt.Sprintf("%s with %d flows of %d bytes is not a rate that iperf3 can pace",
			w.Name(), w.Flows, size))
	}
	return strconv.FormatFloat(bits, 'f', 0, 64), nil
}

func direction(d netload.Direction) []string {
	switch d {
	case netload.Reverse:
		return []string{"-R"}
	case netload.Both:
		return []string{"--bidir"}
	default:
		return nil
	}
}

// step returns the interval of the series: 100 ms, iperf3's minimum, unless the output would become too large.
func step(total time.Duration, w netload.Spec) time.Duration {
	if total.Seconds()*10*float64(w.Flows) <= fineLines {
		return 100 * time.Millisecond
	}
	return time.Second
}

// wholeSeconds rounds up: a shorter window than requested would be a different experiment.
func wholeSeconds(d time.Duration) time.Duration {
	return (max(d, 0) + time.Second - 1).Truncate(time.Second)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
func port(n uint16) string           { return strconv.Itoa(int(n)) }
