//go:build !linux

package preflight

import (
	"net"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Agents in pods run on Linux. On other systems no facts are known.

func facts() []result.Fact { return nil }

func socketOptions(*net.TCPConn) (mtu int, congestion string) { return 0, "" }

func readDevice(device string) Device { return unknownDevice(device) }

func volume(path string) *Volume {
	return &Volume{Facts: machine.Volume(path), Error: "only Linux tells what a volume has"}
}
