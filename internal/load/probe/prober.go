// Package probe sends small requests at fixed times, in parallel over UDP, over a TCP connection that stays open, and
// each over a new TCP connection. It records when each was sent and answered, on one clock. These traces show what a
// change did to a network: how long there was no response, and which connections broke.
//
// Probing is an open loop: a missing response delays no later probe, and no deadline turns a late response into a lost
// one.
package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxOpen is how many new connections may be in progress at a time. It suffices for some seconds without responses, and
// is well below the number of files that a process may open. Further probes are not sent and do not count.
const maxOpen = 4000

// A Config describes a prober.
type Config struct {
	To          netip.AddrPort // a responder with the hash of the token
	Token       Token
	Interval    time.Duration // between the probes of a kind
	MaxDuration time.Duration // longest time that the prober runs
}

// A Prober sends probes of all kinds until it is stopped. Its methods are safe for concurrent use.
type Prober struct {
	Config
	began  time.Time
	cancel context.CancelFunc
	flows  []*flow
	all    sync.WaitGroup // goroutines that send and receive
	paced  chan struct{}  // closed when no more probes are sent
}

// A flow holds the probes of one kind.
type flow struct {
	*Prober
	kind           Kind
	sent, answered []atomic.Int64 // by number of the probe, ns; 0: not yet
	last           atomic.Int64   // time of the latest response
	mu             sync.Mutex
	broken         []int64
	carrier
}

// A carrier sends a probe without waiting for a response, and reports whether it tried to. A probe that was tried and
// failed, as an application's request would, is lost; one that was not tried does not count.
type carrier interface{ send(n uint64) bool }

// Start begins to probe. Probes continue until Stop or until ctx ends.
func Start(ctx context.Context, c Config) (*Prober, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &Prober{Config: c, began: time.Now(), cancel: cancel, paced: make(chan struct{})}
	most := int(c.MaxDuration/c.Interval) + 1
	for _, kind := range Kinds() {
		p.flows = append(p.flows, &flow{Prober: p, kind: kind, sent: make([]atomic.Int64, most),
			answered: make([]atomic.Int64, most)})
	}
	for _, f := range p.flows {
		if err := f.open(ctx); err != nil {
			cancel()
			p.all.Wait()
			return nil, fmt.Errorf("probe %s: %w", c.To, err)
		}
	}
	go p.pace(ctx, most)
	return p, nil
}

// Now returns the time on the prober's clock in ns; never 0.
func (p *Prober) Now() int64 { return max(1, int64(time.Since(p.began))) }

// At converts a time to the prober's clock, in ns.
func (p *Prober) At(t time.Time) int64 { return int64(t.Sub(p.began)) }

// pace sends probe n of all kinds when it is due.
func (p *Prober) pace(ctx context.Context, most int) {
	defer close(p.paced)
	runtime.LockOSThread() // for the kernel's precision of sleep; the thread ends with this goroutine
	raisePriority()
	for n := range most {
		sleepUntil(p.began.Add(time.Duration(n) * p.Interval))
		if ctx.Err() != nil {
			return
		}
		for _, f := range p.flows {
			at := p.Now()
			if f.send(uint64(n)) {
				f.sent[n].Store(at)
			}
		}
	}
}

// Stop waits for late responses, ends the probes and returns the traces.
func (p *Prober) Stop(wait time.Duration) []Trace {
	traces := make([]Trace, 0, len(p.flows))
	time.Sleep(wait)
	for _, f := range p.flows {
		traces = append(traces, f.trace(0))
	}
	p.cancel()
	<-p.paced
	p.all.Wait()
	return traces
}

// flow returns the flow of a kind.
func (p *Prober) flow(kind Kind) *flow {
	return p.flows[slices.IndexFunc(p.flows, func(f *flow) bool { return f.kind == kind })]
}

// Trace returns the trace of a kind so far, from the probe planned at a time in ns on.
func (p *Prober) Trace(kind Kind, from int64) Trace { return p.flow(kind).trace(from) }

// Last returns when the last response of a kind came, in ns; 0 if there is none.
func (p *Prober) Last(kind Kind) int64 { return p.flow(kind).last.Load() }

// First returns when the first response of a kind after a time came, in ns; 0 if there is none.
func (p *Prober) First(kind Kind, after int64) int64 {
	f := p.flow(kind)
	if f.last.Load() <= after {
		return 0 // fast path while no responses come
	}
	return f.trace(0).First(after)
}

func (f *flow) trace(from int64) Trace {
	t := Trace{Kind: f.kind, Interval: int64(f.Interval)}
	first := min(max(0, int(from/int64(f.Interval))), len(f.sent))
	last := min(int(f.Now()/int64(f.Interval))+1, len(f.sent))
	t.Number = first
	for n := first; n < last; n++ {
		t.Sent = append(t.Sent, f.sent[n].Load())
		t.Answered = append(t.Answered, f.answered[n].Load())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t.Broken = append(t.Broken, f.broken...)
	return t
}

// recordResponse records that probe n was answered now.
func (f *flow) recordResponse(n uint64) {
	now := f.Now()
	if n < uint64(len(f.answered)) && f.answered[n].CompareAndSwap(0, now) {
		for last := f.last.Load(); last < now && !f.last.CompareAndSwap(last, now); last = f.last.Load() {
		}
	}
}

// open opens the carrier of the flow's kind.
func (f *flow) open(ctx context.Context) error {
	switch f.kind {
	case UDP:
		conn, err := (&net.Dialer{}).DialContext(ctx, "udp", f.To.String())
		if err != nil {
			return err
		}
		f.carrier = &datagrams{flow: f, conn: conn}
		f.receive(ctx, conn, func() { f.readDatagrams(conn) })
	case TCP:
		s := &stream{flow: f}
		f.carrier = s
		f.all.Go(func() { s.keepConnected(ctx) })
	case TCPNew:
		f.carrier = &connections{flow: f, ctx: ctx, free: make(chan struct{}, maxOpen)}
	}
	return nil
}

// receive runs read in a goroutine and closes conn when ctx ends.
func (f *flow) receive(ctx context.Context, conn net.Conn, read func()) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	f.all.Go(func() {
		defer stop()
		read()
	})
}

// datagrams carries probes in one flow of UDP.
type datagrams struct {
	*flow
	conn   net.Conn
	buffer [datagramSize]byte
}

func (d *datagrams) send(n uint64) bool {
	text := d.Token.datagram(d.buffer[:], n)
	if _, err := d.conn.Write(text); err != nil {
		_, _ = d.conn.Write(text) // the error may belong to an earlier datagram, such as an ICMP message
	}
	return true
}

func (f *flow) readDatagrams(conn net.Conn) {
	buffer := make([]byte, datagramSize+1)
	for {
		size, err := conn.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if n, is := f.Token.number(buffer[:max(size, 0)]); is {
			f.recordResponse(n)
		}
	}
}

// A stream carries probes on a connection that stays open, and reconnects when it breaks.
type stream struct {
	*flow
	conn atomic.Pointer[net.TCPConn]
}

const (
	// sendBuffer holds the probes of a minute, so that no write blocks while nothing is acknowledged.
	sendBuffer = 1 << 20
	redial     = 10 * time.Millisecond
	dialTime   = time.Second
)

func (s *stream) send(n uint64) bool {
	conn := s.conn.Load()
	if conn == nil {
		return true
	}
	if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, n)); err != nil {
		conn.Close() // makes the reader end and reconnect
	}
	return true
}

// keepConnected connects, reads responses until the connection breaks, and reconnects.
func (s *stream) keepConnected(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := s.dial(ctx)
		if err != nil {
			time.Sleep(redial)
			continue
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		s.conn.Store(conn)
		s.read(conn)
		s.conn.Store(nil)
		stop()
		conn.Close()
		if ctx.Err() == nil {
			s.mu.Lock()
			s.broken = append(s.broken, s.Now())
			s.mu.Unlock()
		}
	}
}

func (s *stream) dial(ctx context.Context) (*net.TCPConn, error) {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", s.To.String())
	if err != nil {
		return nil, err
	}
	tcp := conn.(*net.TCPConn)
	_ = tcp.SetWriteBuffer(sendBuffer)
	if _, err := tcp.Write(s.Token[:]); err != nil {
		tcp.Close()
		return nil, err
	}
	return tcp, nil
}

func (s *stream) read(conn net.Conn) {
	var number [numberSize]byte
	for {
		if _, err := io.ReadFull(conn, number[:]); err != nil {
			return
		}
		s.recordResponse(binary.BigEndian.Uint64(number[:]))
	}
}

// connections carries each probe on a new connection.
type connections struct {
	*flow
	ctx  context.Context
	free chan struct{}
}

func (c *connections) send(n uint64) bool {
	select {
	case c.free <- struct{}{}:
		c.all.Go(func() {
			defer func() { <-c.free }()
			if c.ask(n) == nil {
				c.recordResponse(n)
			}
		})
		return true
	default:
		return false
	}
}

// ask opens a connection, waits until its number comes back and resets the connection, so that no TIME_WAIT remains.
func (c *connections) ask(n uint64) error {
	conn, err := (&net.Dialer{Timeout: c.MaxDuration}).DialContext(c.ctx, "tcp", c.To.String())
	if err != nil {
		return err
	}
	defer context.AfterFunc(c.ctx, func() { conn.Close() })()
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetLinger(0)
	if _, err := conn.Write(c.Token.datagram(make([]byte, 0, datagramSize), n)); err != nil {
		return err
	}
	var number [numberSize]byte
	_, err = io.ReadFull(conn, number[:])
	return err
}
