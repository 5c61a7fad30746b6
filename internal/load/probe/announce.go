package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// End makes a responder end at once, without notice to its other clients, as a killed process would.
func End(ctx context.Context, at netip.AddrPort, token Token) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("end the responder of probes at %s: %w", at, err)
	}
	defer conn.Close()
	_, err = conn.Write(token.datagram(nil, stopNumber))
	return err
}

// Interval and total duration of announcements.
const (
	announceInterval = time.Millisecond
	announceTime     = 30 * time.Second
)

// Announce sends datagrams to a listener as soon as this process can, until the listener responds, half a minute has
// passed or ctx ends. They contain the hash, which is not secret.
func Announce(ctx context.Context, to netip.AddrPort, hash TokenHash) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", to.String())
	if err != nil {
		return fmt.Errorf("announce to %s: %w", to, err)
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for ctx.Err() == nil {
			if n, err := conn.Read(make([]byte, 1)); err == nil && n > 0 {
				return
			}
			time.Sleep(announceInterval) // the error belongs to an earlier datagram
		}
	}()
	next := time.NewTicker(announceInterval)
	defer next.Stop()
	for n := uint64(0); ; n++ {
		_, _ = conn.Write(binary.BigEndian.AppendUint64(hash[:], n)) // errors mean that it cannot send yet
		select {
		case <-next.C:
		case <-heard:
			cancel()
			return nil
		case <-ctx.Done():
			cancel()
			<-heard
			return nil
		}
	}
}

// A Listener records announcements.
type Listener struct {
	conn   net.PacketConn
	hash   TokenHash
	mu     sync.Mutex
	heard  []time.Time
	silent bool // the listener does not respond, so that announcements continue
}

// Listen records the announcements with a hash at a free port of an address until Close. A silent listener does not
// respond to them, so that they continue.
func Listen(ctx context.Context, at netip.Addr, hash TokenHash, silent bool) (*Listener, error) {
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, fmt.Errorf("listen for pods that start: %w", err)
	}
	l := &Listener{conn: conn, hash: hash, silent: silent}
	go l.listen()
	return l, nil
}

// Addr returns the address that announcements go to.
func (l *Listener) Addr() netip.AddrPort { return l.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close stops the listener.
func (l *Listener) Close() { l.conn.Close() }

// Heard returns the arrival times of all announcements so far.
func (l *Listener) Heard() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Time(nil), l.heard...)
}

func (l *Listener) listen() {
	const size = len(TokenHash{}) + numberSize
	buffer := make([]byte, size+1)
	for {
		n, from, err := l.conn.ReadFrom(buffer)
		if err != nil {
			return // closed
		}
		if n != size || TokenHash(buffer[:len(l.hash)]) != l.hash {
			continue
		}
		l.mu.Lock()
		l.heard = append(l.heard, time.Now())
		l.mu.Unlock()
		if !l.silent {
			_, _ = l.conn.WriteTo(buffer[:1], from)
		}
	}
}
