// Package iperf3 is the tool of that name behind the family.Tool seam: from a workload it builds two
// command lines (command.go), runs them on the hosts of a pair (this file), reads the JSON that
// both sides print (output.go), and makes a measurement of it (measurement.go).
//
// What is measured comes from the receiver's own output, never from what the sender was told of it:
// with --omit the client of iperf 3.12 reports 151 % of loss where the server counted 76 %.
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
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// program is what runs start on both hosts.
const program = "iperf3"

// Limits of iperf3 and of our patience with it.
const (
	maxOmit   = 60 * time.Second // of -O, before 3.17
	maxLength = 1 << 20          // of -l for TCP
	minLength = 16               // of -l for UDP: its header

	readyWithin = 5 * time.Second       // until the server must take the client's connection
	retryAfter  = 20 * time.Millisecond // a connection that was refused
	grace       = 15 * time.Second      // beyond warm-up and window: connecting, draining, exchanging results
	serverEnds  = 5 * time.Second       // after the client ended
)

// Tool is iperf3. It has no state.
type Tool struct{}

// New is iperf3 as a tool.
func New() Tool { return Tool{} }

// Name is what --tool takes.
func (Tool) Name() string { return program }

// Metrics are those of the workload.
func (Tool) Metrics(w family.Workload) []metric.Metric {
	s, _ := network.Timed(w, family.Times{})
	return metricsOf(s.Kind)
}

func metricsOf(k network.Kind) []metric.Metric {
	switch k {
	case network.TCPStream:
		return metric.Of("", slices.Concat(reported, ofTCP)...)
	case network.UDPStream, network.UDPUnpaced:
		return metric.Of("", slices.Concat(reported, ofDatagrams)...)
	}
	return nil
}

// Supports is nil for tcp-stream, udp-stream-unpaced and for udp-stream with a rate, else it says why not.
func (Tool) Supports(w family.Workload) error {
	s, is := network.Timed(w, family.Times{})
	return supports(s, is, w)
}

func supports(w network.Spec, is bool, given family.Workload) error {
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
	case w.Kind == network.TCPStream && w.Size > maxLength:
		return result.NotSupported(fmt.Sprintf("iperf3 sends at most %d bytes at once, not size=%d", maxLength, w.Size))
	case w.Kind.Datagrams() && w.Size > 0 && w.Size < minLength:
		return result.NotSupported(fmt.Sprintf("iperf3's datagrams carry %d bytes of its own, more than size=%d",
			minLength, w.Size))
	case w.Warmup > maxOmit:
		return result.NotSupported(fmt.Sprintf("iperf3 leaves out at most %s, not a warm-up of %s", maxOmit, w.Warmup))
	}
	return nil
}

// Program is iperf3.
func (Tool) Program(family.Workload) string { return program }

// Run does w once. The server ends with the one test that it serves; where anything goes wrong it
// is ended before Run returns.
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
	err = together(bounded, client, server)
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

// together runs the server and, as soon as it listens, the client; both have ended when it returns.
// The server's error is the better one, except that it was ended because of the client's.
func together(ctx context.Context, client, server *side) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.run(serving) }()

	clientErr, serverErr, over := connect(ctx, client, ended)
	if !over {
		patience := serverEnds
		if clientErr != nil {
			patience = 0 // what the server has to say, it has said
		}
		select {
		case serverErr = <-ended:
		case <-time.After(patience):
			stop()
			serverErr = <-ended
			if clientErr == nil {
				serverErr = fmt.Errorf("the iperf3 server on %s did not end within %s of its client",
					server.host.Name(), serverEnds)
			}
		}
	}
	// A server that was stopped says only that.
	if serverErr != nil && !errors.Is(serverErr, context.Canceled) {
		return serverErr
	}
	return clientErr
}

// connect runs the client, again and again while nobody listens yet. Over says that the server ended
// before a client was through, with serverErr.
func connect(ctx context.Context, client *side, ended <-chan error) (clientErr, serverErr error, over bool) {
	deadline := time.Now().Add(readyWithin)
	for {
		clientErr = client.run(ctx)
		var said *saidError
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
