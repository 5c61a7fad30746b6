package probe

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// openingTimeout is how long a connection may take to present its token.
const openingTimeout = 5 * time.Second

// maxConnections is how many connections a responder has at a time: more than a prober has in progress.
const maxConnections = 4 * maxOpen

// Respond responds to probes that have the token of a hash, over UDP and TCP, at an address (host:port) until ctx ends
// or the prober calls End. It sends nothing to others. With port 0 it chooses one; ready receives the address.
func Respond(ctx context.Context, at string, hash TokenHash, ready func(netip.AddrPort)) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var listening net.ListenConfig
	streams, err := listening.Listen(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("respond to probes: %w", err)
	}
	defer streams.Close()
	bound := streams.Addr().(*net.TCPAddr).AddrPort()
	datagrams, err := listening.ListenPacket(ctx, "udp", bound.String())
	if err != nil {
		return fmt.Errorf("respond to probes: %w", err)
	}
	defer datagrams.Close()
	stop := context.AfterFunc(ctx, func() {
		streams.Close()
		datagrams.Close()
	})
	defer stop()
	ready(bound)
	var serving sync.WaitGroup
	serving.Go(func() { echoDatagrams(datagrams, hash) })
	err = accept(ctx, end, streams, hash)
	serving.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func echoDatagrams(conn net.PacketConn, hash TokenHash) {
	buffer := make([]byte, datagramSize+1)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n == datagramSize && hash.Matches(buffer[:n]) {
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	}
}

// accept serves connections until the listener is closed.
func accept(ctx context.Context, end func(), l net.Listener, hash TokenHash) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	free := make(chan struct{}, maxConnections)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // such as too many open files, which is temporary
			time.Sleep(time.Millisecond)
			continue
		}
		select {
		case free <- struct{}{}:
			serving.Go(func() {
				defer func() { <-free }()
				echo(ctx, end, conn, hash)
			})
		default:
			conn.Close()
		}
	}
}

// echo sends the numbers on a connection with the token back, until it receives stopNumber.
func echo(ctx context.Context, end func(), conn net.Conn, hash TokenHash) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(openingTimeout))
	in := bufio.NewReader(conn)
	var token Token
	if _, err := io.ReadFull(in, token[:]); err != nil || !hash.Matches(token[:]) {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	for {
		var number [numberSize]byte
		if _, err := io.ReadFull(in, number[:]); err != nil {
			return
		}
		if binary.BigEndian.Uint64(number[:]) == stopNumber {
			end()
			return
		}
		if _, err := conn.Write(number[:]); err != nil {
			return
		}
	}
}
