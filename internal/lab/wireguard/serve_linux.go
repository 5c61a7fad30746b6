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
	"github.com/knotmeter/knotmeter/internal/result"
)

// noTUN is the reason where there are no TUN devices.
const noTUN = result.NotSupported("this kernel has no TUN devices (/dev/net/tun, CONFIG_TUN)")

// Serve is the body of the child: WireGuard in userspace in the process's network namespace. Its arguments are the
// name of the device, which it makes, and its MTU. It reads the configuration from standard input, answers with a line,
// ready or what went wrong, and works until standard input ends, which it does at the latest when the parent ends.
func Serve(args []string, stdin io.Reader, stdout io.Writer) error {
	dev, err := open(args)
	if err == nil {
		defer dev.Close()
		err = dev.IpcSetOperation(stdin)
	}
	if err == nil {
		// Not left to the device's own coming up, so that it listens before anybody is told that it does.
		err = dev.Up()
	}
	if err != nil {
		fmt.Fprintln(stdout, err)
		return err
	}
	fmt.Fprintln(stdout, ready)
	_, err = io.Copy(io.Discard, stdin)
	return err
}

func open(args []string) (*device.Device, error) {
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

// openTUN makes a TUN device with offloads and sets it up. It must be up before wireguard-go looks at it: of a device
// that is down it closes the socket again.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil, noTUN
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
		err = asHost(func() error { return unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr) })
	}
	if err == nil {
		err = netns.With(func(c *netns.Conn) error { return c.Up(name) })
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// asHost makes a device that sends no group management, as the kernel's WireGuard sends none: a TUN device of a node
// that forwards would be born into the group of all routers, and say so. Whether the node forwards is another setting.
func asHost(makeDevice func() error) error {
	const forwarding = "net.ipv6.conf.default.forwarding"
	former, err := netns.ReadSysctl(forwarding)
	if errors.Is(err, fs.ErrNotExist) { // no IPv6
		return makeDevice()
	}
	if err := errors.Join(err, netns.Sysctl(forwarding, "0")); err != nil {
		return err
	}
	return errors.Join(makeDevice(), netns.Sysctl(forwarding, former))
}
