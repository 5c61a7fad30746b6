//go:build !linux

package preflight

import "net"

func socketOptions(*net.TCPConn) (mtu int, congestion string) { return 0, "" }
