package bpf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/cgroup"
	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// child as the first argument makes the test binary the client in the control group.
const child = "bpf-test-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == child {
		if err := dial(os.Args[2], os.Args[3], os.Args[4] == "connected"); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// dial sends a line to a service, and prints the answer and the peer's address as the socket reports it.
func dial(network, addr string, connected bool) error {
	answer := make([]byte, 64)
	if connected {
		c, err := net.Dial(network, addr)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		n, err := c.Read(answer)
		fmt.Println(string(answer[:n]), c.RemoteAddr())
		return err
	}
	c, err := net.ListenPacket(network, ":0")
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.WriteTo([]byte("hello"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr))); err != nil {
		return err
	}
	n, from, err := c.ReadFrom(answer)
	fmt.Println(string(answer[:n]), from)
	return err
}

// echo runs an echo server for both protocols until the test ends.
func echo(t *testing.T, ns *netns.NS, addr string) {
	t.Helper()
	var l net.Listener
	var u net.PacketConn
	labtest.In(t, ns, func() (err error) {
		if l, err = net.Listen("tcp", addr); err != nil {
			return err
		}
		u, err = net.ListenPacket("udp", addr)
		return err
	})
	t.Cleanup(func() { l.Close(); u.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	go func() {
		buf := make([]byte, 64)
		for {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			u.WriteTo(buf[:n], from)
		}
	}()
}

// A client is the test binary in a namespace, and in a control group unless group is nil.
type client struct {
	ns    *netns.NS
	group *cgroup.Group
}

func (c client) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{child}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if c.group != nil {
		c.group.Place(cmd.SysProcAttr)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	labtest.In(t, c.ns, cmd.Start)
	err := cmd.Wait()
	return strings.TrimSpace(out.String()), err
}

var services = []Service{
	{netip.MustParseAddrPort("10.96.0.1:80"), netip.MustParseAddrPort("10.0.0.2:5201")},
	{netip.MustParseAddrPort("[fd00:96::1]:80"), netip.MustParseAddrPort("[fd00::2]:5201")},
}

// newClient returns a client whose services are translated, next to an echo server.
func newClient(t *testing.T) client {
	t.Helper()
	a, b := labtest.NewNS(t), labtest.NewNS(t)
	connectNS(t, a, b, "eth0", "eth0", "10.0.0.1/24", "10.0.0.2/24", 1500)
	labtest.In(t, a, func() error { return labtest.Address("eth0", "fd00::1/64") })
	labtest.In(t, b, func() error { return labtest.Address("eth0", "fd00::2/64") })
	for _, at := range []string{"10.0.0.2:5201", "[fd00::2]:5201"} {
		echo(t, b, at)
	}
	group, err := cgroup.New()
	skipUnsupported(t, err)
	t.Cleanup(func() { group.Close() })
	attached, err := attachServices(group.Dir(), services)
	skipUnsupported(t, err)
	t.Cleanup(func() { attached.Close() })
	return client{a, group}
}

func TestServicesAreTranslated(t *testing.T) {
	c := newClient(t)
	for _, s := range []struct{ network, addr, how, want string }{
		{"tcp4", "10.96.0.1:80", "connected", "hello 10.96.0.1:80"},
		{"udp4", "10.96.0.1:80", "connected", "hello 10.96.0.1:80"},
		{"udp4", "10.96.0.1:80", "unconnected", "hello 10.96.0.1:80"},
		{"tcp6", "[fd00:96::1]:80", "connected", "hello [fd00:96::1]:80"},
		{"udp6", "[fd00:96::1]:80", "connected", "hello [fd00:96::1]:80"},
		{"udp6", "[fd00:96::1]:80", "unconnected", "hello [fd00:96::1]:80"},
		{"udp", "10.96.0.1:80", "unconnected", "hello 10.96.0.1:80"}, // IPv4 mapped into an IPv6 socket
		// A client that dials the endpoint itself sees the endpoint.
		{"tcp4", "10.0.0.2:5201", "connected", "hello 10.0.0.2:5201"},
		{"udp6", "[fd00::2]:5201", "unconnected", "hello [fd00::2]:5201"},
	} {
		t.Run(strings.Join([]string{s.network, s.addr, s.how}, " "), func(t *testing.T) {
			got, err := c.run(t, s.network, s.addr, s.how)
			if err != nil || got != s.want {
				t.Errorf("got %q, %v, want %q", got, err, s.want)
			}
		})
	}
}

func TestOnlyTheGroupIsTranslated(t *testing.T) {
	c := newClient(t)
	c.group = nil
	if got, err := c.run(t, "tcp4", "10.96.0.1:80", "connected"); err == nil {
		t.Errorf("outside of the group: %q, want an error", got)
	}
}

func TestServicesOfOneIPVersion(t *testing.T) {
	mixed := []Service{{netip.MustParseAddrPort("10.96.0.1:80"), netip.MustParseAddrPort("[fd00::2]:80")}}
	_, err := attachServices(t.TempDir(), mixed)
	if errors.Is(err, result.ErrNotSupported) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "different IP versions") {
		t.Errorf("got %v", err)
	}
}

func TestUnprivilegedIsToldWhy(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestAttachHere$", "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
		t.Skip("user namespaces are not allowed here")
	}
	if err != nil || bytes.Count(out, []byte("eBPF is not allowed here")) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAttachHere prints the errors of attaching both kinds of programs. TestUnprivilegedIsToldWhy runs it in a user
// namespace.
func TestAttachHere(t *testing.T) {
	if a, err := attachServices(t.TempDir(), nil); err == nil {
		a.Close()
	} else {
		t.Log(err)
	}
	if a, err := AttachTunnel(tunnel(), 1<<30); err == nil {
		a.Close()
	} else {
		t.Log(err)
	}
}

// TestSocketsOfTheGroup checks that services are translated for sockets that this process, which is not in the group,
// dials with Control.
func TestSocketsOfTheGroup(t *testing.T) {
	c := newClient(t)
	for _, s := range []struct{ network, addr string }{
		{"tcp", "10.96.0.1:80"}, {"udp", "10.96.0.1:80"}, {"tcp", "[fd00:96::1]:80"}, {"udp", "[fd00:96::1]:80"},
	} {
		t.Run(s.network+" "+s.addr, func(t *testing.T) {
			labtest.In(t, c.ns, func() error {
				d := net.Dialer{Control: c.group.Control}
				conn, err := d.Dial(s.network, s.addr)
				if err != nil {
					return err
				}
				defer conn.Close()
				answer := make([]byte, 5)
				deadline := conn.SetDeadline(time.Now().Add(time.Minute))
				_, write := conn.Write([]byte("hello"))
				_, read := io.ReadFull(conn, answer)
				err = errors.Join(deadline, write, read)
				if err != nil || string(answer) != "hello" {
					t.Errorf("got %q, %v", answer, err)
				}
				return nil
			})
		})
	}
}
