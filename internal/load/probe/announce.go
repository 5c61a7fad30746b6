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

// End has a responder end as a process does that is killed: without notice to anybody.
func End(ctx context.Context, at netip.AddrPort, token Token) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("end what answers probes at %s: %w", at, err)
	}
	defer conn.Close()
	_, err = conn.Write(token.datagram(nil, theEnd))
	return err
}

// How often and how long an announcer tells that it is there.
const (
	announceInterval = time.Millisecond
	announceTime     = 30 * time.Second
)

// Announce tells a listener over UDP that this process can send, until the listener answers, half a minute has passed
// or ctx ends. The datagrams have the lock, which who reads them may know.
func Announce(ctx context.Context, to netip.AddrPort, lock Lock) error {
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
			time.Sleep(announceInterval) // an error is that of an earlier datagram
		}
	}()
	next := time.NewTicker(announceInterval)
	defer next.Stop()
	for n := uint64(0); ; n++ {
		_, _ = conn.Write(binary.BigEndian.AppendUint64(lock[:], n)) // while it cannot send, that is lost
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

// A Listener hears announcements.
type Listener struct {
	conn   net.PacketConn
	lock   Lock
	mu     sync.Mutex
	heard  []time.Time
	silent bool // answers nothing, so that who announces goes on
}

// Listen hears the announcements with a lock, at any free port of an address until Close. One that is silent does not
// answer them, so that they go on.
func Listen(ctx context.Context, at netip.Addr, lock Lock, silent bool) (*Listener, error) {
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, fmt.Errorf("listen for pods that start: %w", err)
	}
	l := &Listener{conn: conn, lock: lock, silent: silent}
	go l.listen()
	return l, nil
}

// Addr is where announcements go.
func (l *Listener) Addr() netip.AddrPort { return l.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close ends it.
func (l *Listener) Close() { l.conn.Close() }

// Heard are the times of all announcements so far.
func (l *Listener) Heard() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Time(nil), l.heard...)
}

// Forget forgets what was heard.
func (l *Listener) Forget() {
	l.mu.Lock()
	l.heard = nil
	l.mu.Unlock()
}

func (l *Listener) listen() {
	const size = len(Lock{}) + numberSize
	buffer := make([]byte, size+1)
	for {
		n, from, err := l.conn.ReadFrom(buffer)
		if err != nil {
			return // closed
		}
		if n != size || Lock(buffer[:len(l.lock)]) != l.lock {
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
