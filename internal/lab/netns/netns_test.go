//go:build linux

package netns_test

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, unix.EPERM) {
		t.Skip("making network namespaces needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func idOf(t *testing.T, ns *netns.NS) uint64 {
	t.Helper()
	n, err := ns.ID()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// currentID returns the ID of the calling thread's namespace.
func currentID() (uint64, error) {
	ns, err := netns.Current()
	if err != nil {
		return 0, err
	}
	n, err := ns.ID()
	return n, errors.Join(err, ns.Close())
}

func TestDoIsInTheNamespaceAndComesBack(t *testing.T) {
	ns := newNS(t)
	defer func() { _ = ns.Close() }()
	outside, err := currentID()
	if err != nil {
		t.Fatal(err)
	}
	want := errors.New("f's own error")
	err = ns.Do(func() error {
		inside, err := currentID()
		if err != nil {
			return err
		}
		if inside != idOf(t, ns) || inside == outside {
			t.Errorf("Do ran in namespace %d, want %d", inside, idOf(t, ns))
		}
		// Modules for tunnels add interfaces of their own to each new namespace, which are down as lo is.
		interfaces, err := net.Interfaces()
		up := slices.ContainsFunc(interfaces, func(i net.Interface) bool { return i.Flags&net.FlagUp != 0 })
		if err != nil || len(interfaces) == 0 || interfaces[0].Name != "lo" || up {
			t.Errorf("a new namespace has %v, %v; want lo, and nothing that is up", interfaces, err)
		}
		return want
	})
	if !errors.Is(err, want) {
		t.Errorf("got %v, want f's error", err)
	}
	// No thread is left in the namespace.
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if n, err := currentID(); err != nil || n != outside {
				t.Errorf("a goroutine is in namespace %d, %v; want %d", n, err, outside)
			}
		})
	}
	all.Wait()
}

func TestSwitcherMovesOneThread(t *testing.T) {
	a, b := newNS(t), newNS(t)
	err := netns.WithSwitcher(func(s *netns.Switcher) error {
		for _, ns := range []*netns.NS{a, b, b, a} {
			if err := s.Enter(ns); err != nil {
				return err
			}
			if n, err := currentID(); err != nil || n != idOf(t, ns) {
				t.Errorf("the thread is in %d, %v; want %d", n, err, idOf(t, ns))
			}
		}
		c, err := s.New()
		if err != nil {
			return err
		}
		if n, err := currentID(); err != nil || n != idOf(t, c) {
			t.Errorf("after New the thread is in %d, %v; want %d", n, err, idOf(t, c))
		}
		return c.Close()
	})
	if err := errors.Join(err, netns.CloseAll([]*netns.NS{a, b})); err != nil {
		t.Error(err)
	}
}

func TestCloseAllClosesNothingElse(t *testing.T) {
	// Descriptors in the range that CloseAll uses, so that its own are not contiguous.
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	var others []int
	for _, at := range []int{512, 514, 515, 518} {
		fd, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, at)
		if err != nil {
			t.Fatal(err)
		}
		others = append(others, fd)
	}
	var all []*netns.NS
	for range 5 {
		all = append(all, newNS(t))
	}
	before := openDescriptors(t)
	if err := netns.CloseAll(all); err != nil {
		t.Error(err)
	}
	after := openDescriptors(t)
	if len(after) != len(before)-len(all) {
		t.Errorf("%d descriptors were open and %d are, want %d fewer", len(before), len(after), len(all))
	}
	for _, fd := range others {
		if err := unix.Close(fd); err != nil {
			t.Errorf("descriptor %d: %v", fd, err)
		}
	}
	if err := netns.CloseAll(nil); err != nil {
		t.Error(err)
	}
}

func openDescriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSysctlIsTheNamespacesOwn(t *testing.T) {
	const name = "net.ipv4.ip_forward"
	ns := newNS(t)
	defer func() { _ = ns.Close() }()
	outside, err := netns.ReadSysctl(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"1", "0"} {
		err := ns.Do(func() error {
			if err := netns.WriteSysctl(name, value); err != nil {
				return err
			}
			if got, err := netns.ReadSysctl(name); err != nil || got != value {
				t.Errorf("%s is %s, %v; want %s", name, got, err, value)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := netns.ReadSysctl(name); err != nil || got != outside {
			t.Errorf("outside %s is %s, %v; it was %s", name, got, err, outside)
		}
	}
}

func TestSysctlRefusesWhatIsNotANamespaces(t *testing.T) {
	for _, name := range []string{"kernel.ostype", "vm.swappiness", "net.//.kernel.ostype", "net.../kernel.panic", "net",
		"net.", "", "/net.ipv4"} {
		if err := netns.WriteSysctl(name, "0"); err == nil {
			t.Errorf("sysctl %q was written", name)
		}
		if value, err := netns.ReadSysctl(name); err == nil {
			t.Errorf("sysctl %q was read: %s", name, value)
		}
	}
}

func TestNamespacesDiffer(t *testing.T) {
	var ids []uint64
	for range 3 {
		ns := newNS(t)
		defer func() { _ = ns.Close() }()
		if slices.Contains(ids, idOf(t, ns)) {
			t.Errorf("two namespaces have the number %d", idOf(t, ns))
		}
		ids = append(ids, idOf(t, ns))
	}
}
