package wireguard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/userspace"
	"github.com/knotmeter/knotmeter/internal/result"
)

// errNoTUN is returned if there are no TUN devices.
const errNoTUN = result.NotSupported("this kernel has no TUN devices (/dev/net/tun, CONFIG_TUN)")

// Serve runs WireGuard in user space in the process's network namespace; it is the program of the child. Its arguments
// are the name of the device, which it makes, and its MTU in bytes. It reads the configuration from stdin, writes a
// line to stdout, ready or the error, and runs until stdin ends, at the latest with the parent.
func Serve(args []string, stdin io.Reader, stdout io.Writer) error {
	dev, err := newDevice(args)
	if err == nil {
		defer dev.Close()
		err = dev.IpcSetOperation(stdin)
	}
	if err == nil {
		// Up returns when the device listens. Otherwise it would come up some time after the response.
		err = dev.Up()
	}
	return userspace.Serve(err, stdin, stdout)
}

func newDevice(args []string) (*device.Device, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("want a device and its MTU, not %d arguments", len(args))
	}
	mtu, err := strconv.Atoi(args[1])
	if err != nil {
		return nil, fmt.Errorf("MTU %q is not a number", args[1])
	}
	file, err := openTUN(args[0])
	if err != nil {
		return nil, fmt.Errorf("TUN device %s: %w", args[0], err)
	}
	t, err := tun.CreateTUNFromFile(file, mtu)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("TUN device %s: %w", args[0], err), file.Close())
	}
	quiet := &device.Logger{Verbosef: device.DiscardLogf, Errorf: device.DiscardLogf}
	return device.NewDevice(t, conn.NewDefaultBind(), quiet), nil
}

// openTUN makes a TUN device with offloads and sets it up. It must be up before wireguard-go uses it, which otherwise
// closes its socket again.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil, errNoTUN
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil, result.NotSupported("this user may not open /dev/net/tun")
	}
	if err != nil {
		return nil, fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = withoutForwarding(func() error { return unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr) })
	}
	if err == nil {
		err = netns.With(func(c *netns.Conn) error { return c.Up(name) })
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// withoutForwarding runs makeDevice while IPv6 forwarding is off for new devices. A TUN device that is made with
// forwarding joins the group of all routers and reports that, which the kernel's WireGuard does not do. The setting is
// restored afterwards.
func withoutForwarding(makeDevice func() error) error {
	const forwarding = "net.ipv6.conf.default.forwarding"
	former, err := netns.ReadSysctl(forwarding)
	if errors.Is(err, fs.ErrNotExist) { // no IPv6
		return makeDevice()
	}
	if err := errors.Join(err, netns.WriteSysctl(forwarding, "0")); err != nil {
		return err
	}
	return errors.Join(makeDevice(), netns.WriteSysctl(forwarding, former))
}
