//go:build linux

package netns

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/machine"
)

// SwitchOff disables segmentation, coalescing and transmit checksum offloads of a device in the namespace of the
// calling thread, which the caller must have locked.
func SwitchOff(dev string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for _, set := range []uint32{unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO, unix.ETHTOOL_SGRO, unix.ETHTOOL_STXCSUM} {
		value := struct{ cmd, data uint32 }{cmd: set}
		if err := machine.Ethtool(fd, dev, unsafe.Pointer(&value)); err != nil {
			return fmt.Errorf("switch off offloads of device %s: %w", dev, err)
		}
	}
	return nil
}
