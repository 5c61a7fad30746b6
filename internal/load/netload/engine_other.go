//go:build !linux

package netload

import (
	"context"
	"net/netip"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
)

// IdleLevel is for Linux, as Run is.
func IdleLevel(time.Duration) (float64, error) {
	return 0, result.NotSupported("the native load generator needs Linux")
}

// Run is for Linux: it stands on sendmmsg, TCP_INFO and the CPU accounting of its kernel.
func Run(context.Context, Config, func(netip.AddrPort)) (Report, error) {
	return Report{}, result.NotSupported("the native load generator needs Linux")
}
