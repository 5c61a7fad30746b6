//go:build !linux

package netload

import (
	"context"
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// IdleLevel returns result.ErrNotSupported: it needs Linux.
func IdleLevel(time.Duration) (float64, error) {
	return 0, result.NotSupported("the native load generator needs Linux")
}

// Run returns result.ErrNotSupported: it needs sendmmsg, TCP_INFO and the CPU accounting of Linux.
func Run(context.Context, Config, func(netip.AddrPort)) (Report, error) {
	return Report{}, result.NotSupported("the native load generator needs Linux")
}
