package trial

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/knotmeter/knotmeter/internal/load/probe"
)

// A responder is what the pods of a run do. Its arguments may be read by whoever reads pods.
type responder struct {
	port     uint16
	lock     probe.Lock
	lingers  time.Duration  // after it was told to end
	announce netip.AddrPort // to whom it announces itself; none: to nobody
}

// args are the arguments by which parseResponder knows it.
func (r responder) args() []string {
	list := []string{strconv.Itoa(int(r.port)), r.lock.String(), r.lingers.String()}
	if r.announce.IsValid() {
		list = append(list, r.announce.String())
	}
	return list
}

func parseResponder(args []string) (r responder, err error) {
	if len(args) != 3 && len(args) != 4 {
		return r, fmt.Errorf("what answers probes takes a port, a lock and a time, and no %d arguments", len(args))
	}
	number, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil {
		return r, fmt.Errorf("the port %q: %w", args[0], err)
	}
	r.port = uint16(number)
	if r.lock, err = probe.ParseLock(args[1]); err != nil {
		return r, fmt.Errorf("the lock: %w", err)
	}
	if r.lingers, err = time.ParseDuration(args[2]); err != nil {
		return r, fmt.Errorf("the time: %w", err)
	}
	if len(args) == 4 {
		if r.announce, err = netip.ParseAddrPort(args[3]); err != nil {
			return r, fmt.Errorf("whom to tell: %w", err)
		}
	}
	return r, nil
}

// Respond answers the probes of a run for some time after ctx ends, as servers should that a Service may still send
// requests to.
func Respond(ctx context.Context, args []string) error {
	r, err := parseResponder(args)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	context.AfterFunc(ctx, func() { time.AfterFunc(r.lingers, end) })
	if r.announce.IsValid() {
		go func() { _ = probe.Announce(serving, r.announce, r.lock) }() // that it cannot is what its listener finds out
	}
	return probe.Respond(serving, net.JoinHostPort("", args[0]), r.lock, func(netip.AddrPort) {})
}
