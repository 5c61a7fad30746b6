// Package iperf3 runs iperf3 as a family.Tool: from a workload it builds two command lines (command.go), runs them on
// the hosts of a pair (this file), reads the JSON that both sides print (output.go), and makes a measurement of it
// (measurement.go).
//
// The values come from the receiver's own output, never from what the sender received of it: with --omit the client of
// iperf 3.12 reports 151 % of loss where the server counted 76 %.
package iperf3

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// program is the command on both hosts.
const program = "iperf3"

// Limits of iperf3, and how long runs wait for it.
const (
	maxOmit   = 60 * time.Second // of -O, before version 3.17
	maxLength = 1 << 20          // bytes of -l for TCP
	minLength = 16               // bytes of -l for UDP: its header

	readyWithin = 5 * time.Second       // for the server to accept the client's connection
	retryAfter  = 20 * time.Millisecond // between attempts while connections are refused
	grace       = 15 * time.Second      // in addition to warm-up and window: connecting, draining, exchanging results
	serverEnds  = 5 * time.Second       // for the server to end after the client
)

// Tool is the iperf3 tool. It has no state.
type Tool struct{}

// New returns the iperf3 tool.
func New() Tool { return Tool{} }

// Name returns the name for --tool.
func (Tool) Name() string { return program }

// Metrics returns the metrics of the workload.
func (Tool) Metrics(w family.Workload) []metric.Metric {
	s, _ := network.Timed(w, family.Times{})
	return metricsOf(s.Kind)
}

func metricsOf(k netload.Kind) []metric.Metric {
	switch k {
	case netload.TCPStream:
		return metric.Of("", slices.Concat(reported, ofTCP)...)
	case netload.UDPStream, netload.UDPUnpaced:
		return metric.Of("", slices.Concat(reported, ofDatagrams)...)
	}
	return nil
}

// Supports returns nil for tcp-stream, udp-stream-unpaced and udp-stream with a rate, else an error that wraps
// result.ErrNotSupported.
func (Tool) Supports(w family.Workload) error {
	s, is := network.Timed(w, family.Times{})
	return supports(s, is, w)
}

func supports(w netload.Spec, is bool, given family.Workload) error {
	switch {
	case !is:
		return result.NotSupported(fmt.Sprintf("iperf3 has no %s: it measures streams", given))
	case !w.Kind.Stream():
		return result.NotSupported(fmt.Sprintf("iperf3 has no %s: it measures streams, not requests", w.Kind))
	case w.Searches():
		return result.NotSupported("iperf3 sends UDP at one rate for whole seconds and cannot search for the highest one " +
			"under a loss threshold; give rate=, or take udp-stream-unpaced")
	case w.Offload:
		return result.NotSupported("iperf3 before 3.21 has no UDP segmentation offload")
	case w.Kind == netload.TCPStream && w.Size > maxLength:
		return result.NotSupported(fmt.Sprintf("iperf3 sends at most %d bytes at once, not size=%d", maxLength, w.Size))
	case w.Kind.Datagrams() && w.Size > 0 && w.Size < minLength:
		return result.NotSupported(fmt.Sprintf("iperf3's datagrams carry %d bytes of its own, more than size=%d",
			minLength, w.Size))
	case w.Warmup > maxOmit:
		return result.NotSupported(fmt.Sprintf("iperf3 leaves out at most %s, not a warm-up of %s", maxOmit, w.Warmup))
	}
	return nil
}

// Program returns the name of iperf3.
func (Tool) Program(family.Workload) string { return program }

// Run carries out w once. The server ends after one test; on errors it is stopped before Run returns.
func (t Tool) Run(
	ctx context.Context, p host.Pair, given family.Workload, times family.Times,
) (result.Measurement, error) {
	w, is := network.Timed(given, times)
	if err := supports(w, is, given); err != nil {
		return result.Measurement{}, err
	}
	c, err := newCommands(p, w)
	if err != nil {
		return result.Measurement{}, err
	}
	bound := readyWithin + c.warmup + c.window + grace
	bounded, cancel := context.WithTimeout(ctx, bound)
	defer cancel()

	server := newSide("server", p.Server, c.server)
	client := newSide("client", p.Client, c.client)
	err = runBoth(bounded, client, server)
	raw := files(server, client)
	switch {
	case err == nil:
		m, err := measure(c, w, &client.output, &server.output)
		m.Raw = raw
		return m, err
	case ctx.Err() != nil:
		err = ctx.Err()
	case bounded.Err() != nil:
		err = fmt.Errorf("iperf3 from %s to %s was not done %s after it should have been: %w",
			p.Client.Name(), p.Server.Name(), grace, bounded.Err())
	}
	return result.Measurement{Raw: raw}, err
}

// runBoth runs the server and, as soon as it listens, the client; both have ended when it returns. It prefers the
// server's error, unless the server was stopped because of the client's.
func runBoth(ctx context.Context, client, server *side) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.run(serving) }()

	clientErr, serverErr, over := runClient(ctx, client, ended)
	if !over {
		wait := serverEnds
		if clientErr != nil {
			wait = 0 // the server will report nothing more
		}
		select {
		case serverErr = <-ended:
		case <-time.After(wait):
			stop()
			serverErr = <-ended
			if clientErr == nil {
				serverErr = fmt.Errorf("the iperf3 server on %s did not end within %s of its client",
					server.host.Name(), serverEnds)
			}
		}
	}
	// The error of a server that was stopped has no information.
	if serverErr != nil && !errors.Is(serverErr, context.Canceled) {
		return serverErr
	}
	return clientErr
}

// runClient runs the client, and repeats it while the server does not listen yet. over means that the server ended with
// serverErr before a client had succeeded.
func runClient(ctx context.Context, client *side, ended <-chan error) (clientErr, serverErr error, over bool) {
	deadline := time.Now().Add(readyWithin)
	for {
		clientErr = client.run(ctx)
		var said *reportedError
		if !errors.As(clientErr, &said) || !said.notListening() || time.Now().After(deadline) {
			return clientErr, nil, false
		}
		select {
		case serverErr = <-ended:
			return clientErr, serverErr, true
		case <-ctx.Done():
			return ctx.Err(), nil, false
		case <-time.After(retryAfter):
		}
	}
}
