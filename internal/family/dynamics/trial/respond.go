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

// A responder holds the settings of a pod that answers probes. It holds no secret, because everyone who may read pods
// can read its arguments.
type responder struct {
	port     uint16
	hash     probe.TokenHash
	linger   time.Duration  // how long it answers after the signal to end
	announce netip.AddrPort // where it announces itself; zero: nowhere
}

// args returns the arguments that parseResponder reads.
func (r responder) args() []string {
	list := []string{strconv.Itoa(int(r.port)), r.hash.String(), r.linger.String()}
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
	if r.hash, err = probe.ParseTokenHash(args[1]); err != nil {
		return r, fmt.Errorf("the hash: %w", err)
	}
	if r.linger, err = time.ParseDuration(args[2]); err != nil {
		return r, fmt.Errorf("the time: %w", err)
	}
	if len(args) == 4 {
		if r.announce, err = netip.ParseAddrPort(args[3]); err != nil {
			return r, fmt.Errorf("whom to tell: %w", err)
		}
	}
	return r, nil
}

// Respond answers the probes of a run until some time after ctx ends, like a server to which a Service may still send
// requests. Its arguments are a port, a lock, the time to linger and, optionally, the address to announce itself to.
func Respond(ctx context.Context, args []string) error {
	r, err := parseResponder(args)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	context.AfterFunc(ctx, func() { time.AfterFunc(r.linger, end) })
	if r.announce.IsValid() {
		go func() { _ = probe.Announce(serving, r.announce, r.hash) }() // the listener notices a failure
	}
	return probe.Respond(serving, net.JoinHostPort("", args[0]), r.hash, func(netip.AddrPort) {})
}
