//go:build !linux

package preflight

import (
	"net"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Pods have Linux; elsewhere a place knows nothing of itself.

func facts() []result.Fact { return nil }

func socket(*net.TCPConn) (mtu int, congestion string) { return 0, "" }

func lookAt(device string) Device { return unknownDevice(device) }

func volume(path string) *Volume {
	return &Volume{Facts: machine.Volume(path), Error: "only Linux tells what a volume has"}
}
