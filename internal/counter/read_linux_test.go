package counter

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/metric"
)

// overflow sends datagrams to a socket that has a small buffer and is not read.
func overflow() error {
	in, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer in.Close()
	if err := in.SetReadBuffer(4096); err != nil {
		return err
	}
	out, err := net.Dial("udp", in.LocalAddr().String())
	if err != nil {
		return err
	}
	defer out.Close()
	for range 100 {
		if _, err := out.Write(make([]byte, 1000)); err != nil {
			return err
		}
	}
	return nil
}

// TestRead checks that the counters are those of the thread's own namespace and of the node's that the environment
// names.
func TestRead(t *testing.T) {
	own, node := labtest.NewNS(t), labtest.NewNS(t)
	t.Setenv(Node, fmt.Sprintf("/proc/self/fd/%d", node.Fd()))
	read := func() (l Snapshot) {
		labtest.In(t, own, func() (err error) {
			l, err = Read()
			return err
		})
		return l
	}
	here := metric.ReceiveBufferErrors
	for at, ns := range map[string]*netns.NS{here: own, metric.OfNode + here: node} {
		labtest.In(t, ns, func() error { return labtest.Address("lo", "127.0.0.1/8") })
		before := read()
		labtest.In(t, ns, overflow)
		counted := read().Since(before)
		for _, name := range []string{here, metric.OfNode + here} {
			if n := counted[name]; name == at && n < 50 || name != at && n != 0 {
				t.Errorf("%s in %s: %v", at, name, counted)
			}
		}
	}
}

// TestDriverStatistics checks that a network card of this machine has as many statistics as its driver says.
func TestDriverStatistics(t *testing.T) {
	cards, err := filepath.Glob("/sys/class/net/*/device")
	if err != nil || len(cards) == 0 {
		t.Skip("this machine has no network card")
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	card := filepath.Base(filepath.Dir(cards[0]))
	values, err := driverStatistics(fd, card)
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		t.Fatal(err)
	}
	if info, err := unix.IoctlGetEthtoolDrvinfo(fd, card); err != nil || len(values) > int(info.N_stats) ||
		info.N_stats > 0 && len(values) == 0 {
		t.Errorf("%s has %d statistics: %v, %v", card, info.N_stats, values, err)
	}
	if _, err := driverStatistics(fd, "there-is-none"); !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
}
