package machine

import (
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// InspectDevice describes a network device of this namespace.
func InspectDevice(device string) Device {
	d := unknownDevice(device)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if device == "" || err != nil {
		return d
	}
	defer unix.Close(fd)
	d.Offloads, d.Driver = offloads(fd, device), deviceDriver(fd, device)
	d.Qdisc = qdisc(device)
	d.Speed = formatSpeed(d.Driver, readText("/sys/class/net/"+device+"/speed"))
	return d
}

// formatSpeed returns the speed of a device from the kernel's number of Mbit/s. Veth devices and TUN devices report a
// constant and have no speed.
func formatSpeed(driver, mbit string) string {
	if n, err := strconv.Atoi(mbit); err != nil || n <= 0 || driver == "veth" || driver == "tun" {
		return result.Unknown
	}
	return mbit + " Mbit/s"
}

// deviceDriver returns the name of a device's driver, as ethtool reports it.
func deviceDriver(fd int, device string) string {
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, device)
	if err != nil || info.Driver[0] == 0 {
		return result.Unknown
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// deviceFeatures are the offloads that are read, with ethtool's older requests, which need no privileges.
var deviceFeatures = []struct {
	name    string
	request uint32
}{
	{"rx-checksum", unix.ETHTOOL_GRXCSUM}, {"tx-checksum", unix.ETHTOOL_GTXCSUM}, {"tso", unix.ETHTOOL_GTSO},
	{"gso", unix.ETHTOOL_GGSO}, {"gro", unix.ETHTOOL_GGRO},
}

// offloads lists the enabled features, separated by spaces, or "none".
func offloads(fd int, device string) string {
	var on []string
	for _, o := range deviceFeatures {
		value := struct{ cmd, data uint32 }{cmd: o.request}
		if Ethtool(fd, device, unsafe.Pointer(&value)) != nil {
			return result.Unknown
		}
		if value.data != 0 {
			on = append(on, o.name)
		}
	}
	if len(on) == 0 {
		return "none"
	}
	return strings.Join(on, " ")
}

// Ethtool sends a request of <linux/ethtool.h> to the driver of a device of the calling thread's network namespace. The
// driver overwrites the request with its response. fd is a socket of any kind.
func Ethtool(fd int, device string, request unsafe.Pointer) error {
	var ifr struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel's union is larger than a pointer
	}
	copy(ifr.name[:unix.IFNAMSIZ-1], device)
	ifr.data = request
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr))); e != 0 {
		return e
	}
	return nil
}
