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

// opening is how long a connection may take to show its token.
const opening = 5 * time.Second

// most is how many connections a responder has at a time: those of a prober whose answers all are on their way.
const most = 4 * maxOpen

// Respond answers the probes that have a lock's token, over UDP and TCP, at an address (host:port) until ctx ends or
// the prober has it end. It has nothing to say to others. Port 0 is any that is free; ready is told which.
func Respond(ctx context.Context, at string, lock Lock, ready func(netip.AddrPort)) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var listening net.ListenConfig
	streams, err := listening.Listen(ctx, "tcp", at)
	if err != nil {
		return fmt.Errorf("answer probes: %w", err)
	}
	defer streams.Close()
	bound := streams.Addr().(*net.TCPAddr).AddrPort()
	datagrams, err := listening.ListenPacket(ctx, "udp", bound.String())
	if err != nil {
		return fmt.Errorf("answer probes: %w", err)
	}
	defer datagrams.Close()
	stop := context.AfterFunc(ctx, func() {
		streams.Close()
		datagrams.Close()
	})
	defer stop()
	ready(bound)
	var serving sync.WaitGroup
	serving.Go(func() { echoDatagrams(datagrams, lock) })
	err = accept(ctx, end, streams, lock)
	serving.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func echoDatagrams(conn net.PacketConn, lock Lock) {
	buffer := make([]byte, datagramSize+1)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && n == datagramSize && lock.Opens(buffer[:n]) {
			_, _ = conn.WriteTo(buffer[:n], from)
		}
	}
}

// accept serves one connection after another until the listener is closed.
func accept(ctx context.Context, end func(), l net.Listener, lock Lock) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	free := make(chan struct{}, most)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil { // such as too many open files, which passes
			time.Sleep(time.Millisecond)
			continue
		}
		select {
		case free <- struct{}{}:
			serving.Go(func() {
				defer func() { <-free }()
				echo(ctx, end, conn, lock)
			})
		default:
			conn.Close()
		}
	}
}

// echo sends the numbers of a connection back that began with the token, until one says that this is the end.
func echo(ctx context.Context, end func(), conn net.Conn, lock Lock) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetReadDeadline(time.Now().Add(opening))
	in := bufio.NewReader(conn)
	var token Token
	if _, err := io.ReadFull(in, token[:]); err != nil || !lock.Opens(token[:]) {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	for {
		var number [numberSize]byte
		if _, err := io.ReadFull(in, number[:]); err != nil {
			return
		}
		if binary.BigEndian.Uint64(number[:]) == theEnd {
			end()
			return
		}
		if _, err := conn.Write(number[:]); err != nil {
			return
		}
	}
}
