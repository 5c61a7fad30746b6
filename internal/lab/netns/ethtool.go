//go:build linux

package netns

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of <linux/ethtool.h> that read a feature. The next number is the command that writes it.
const (
	getRXChecksum = 0x14
	getTXChecksum = 0x16
	getTSO        = 0x1e
	getGSO        = 0x23
	getGRO        = 0x2b
)

// SwitchOff disables segmentation, coalescing and transmit checksum offloads of a device in the namespace of the
// calling thread, which the caller must have locked.
func SwitchOff(dev string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for _, read := range []uint32{getTSO, getGSO, getGRO, getTXChecksum} {
		if _, err := ethtool(fd, dev, read+1); err != nil {
			return fmt.Errorf("switch off offloads of device %s: %w", dev, err)
		}
	}
	return nil
}

// Offloads returns the state of the offloads of a device in the namespace of the calling thread, which the caller must
// have locked, with ethtool's abbreviations: "tso on".
func Offloads(dev string) ([]string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var all []string
	for _, o := range []struct {
		name string
		cmd  uint32
	}{{"tso", getTSO}, {"gso", getGSO}, {"gro", getGRO}, {"tx-checksum", getTXChecksum}, {"rx-checksum", getRXChecksum}} {
		on, err := ethtool(fd, dev, o.cmd)
		if err != nil {
			return nil, fmt.Errorf("read %s of device %s: %w", o.name, dev, err)
		}
		state := "off"
		if on {
			state = "on"
		}
		all = append(all, o.name+" "+state)
	}
	return all, nil
}

// ethtool calls the ioctl with a struct ethtool_value and reports whether the returned value is not 0.
func ethtool(fd int, dev string, cmd uint32) (bool, error) {
	value := struct{ cmd, data uint32 }{cmd: cmd}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel's union is larger than a pointer
	}
	copy(request.name[:unix.IFNAMSIZ-1], dev)
	request.data = unsafe.Pointer(&value)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return false, errno
	}
	return value.data != 0, nil
}
