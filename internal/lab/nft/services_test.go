//go:build linux

package nft_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/result"
)

// inNamespace runs f in a new namespace whose loopback device is up and has some addresses.
func inNamespace(t *testing.T, addresses []lab.Dual, f func() error) {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, unix.EPERM) {
		t.Skip("making network namespaces needs root")
	}
	if err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		conn, err := netns.OpenConn()
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.Up("lo"); err != nil {
			return err
		}
		for _, d := range addresses {
			for _, p := range d.Prefix(32, 128).All() {
				if err := conn.AddAddr("lo", p); err != nil {
					return err
				}
			}
		}
		return f()
	})
	if err := errors.Join(err, ns.Close()); err != nil {
		t.Fatal(err)
	}
}

func service(n, m int) lab.Service {
	return lab.Service{Addr: lab.ServiceAddr(n, m), Endpoint: lab.PodAddr(n, m)}
}

func TestServicesReachTheirEndpoints(t *testing.T) {
	services := []lab.Service{service(1, 1), service(1, 2)}
	// A Service's address needs a route, here to the node itself.
	places := []lab.Dual{lab.PodAddr(1, 1), lab.PodAddr(1, 2), lab.NodeAddr(1)}
	inNamespace(t, places, func() error {
		err := nft.DNAT(services).Apply(nil)
		if errors.Is(err, result.ErrNotSupported) {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		if err := addServiceRoutes(); err != nil {
			return err
		}
		for _, s := range services {
			for _, ipv6 := range []bool{false, true} {
				for _, network := range []string{"tcp", "udp"} {
					if err := checkAnswer(network, s, ipv6); err != nil {
						t.Errorf("%s, IPv6 %t, service %s: %v", network, ipv6, s.Addr.Of(ipv6), err)
					}
				}
			}
		}
		return nil
	})
}

func addServiceRoutes() error {
	conn, err := netns.OpenConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	for i, dst := range lab.ServiceNet().All() {
		if err := conn.AddRoute(netns.Route{Dst: dst, Dev: "lo", Src: lab.NodeAddr(1).All()[i]}); err != nil {
			return err
		}
	}
	return nil
}

// checkAnswer returns an error unless a client that dials a Service gets the endpoint's answer.
func checkAnswer(network string, s lab.Service, ipv6 bool) error {
	want := s.Endpoint.Of(ipv6).String()
	listen := net.JoinHostPort(want, fmt.Sprint(lab.ServicePort))
	dial := net.JoinHostPort(s.Addr.Of(ipv6).String(), fmt.Sprint(lab.ServicePort))
	stop, err := serve(network, listen, want)
	if err != nil {
		return err
	}
	defer stop()
	conn, err := net.DialTimeout(network, dial, time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		return err
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("got the answer %q, want %q", got, want)
	}
	return nil
}

func serve(network, listen, answer string) (stop func(), err error) {
	if network == "udp" {
		conn, err := net.ListenPacket(network, listen)
		if err != nil {
			return nil, err
		}
		go func() {
			if _, from, err := conn.ReadFrom(make([]byte, 1)); err == nil {
				_, _ = conn.WriteTo([]byte(answer), from)
			}
		}()
		return func() { _ = conn.Close() }, nil
	}
	l, err := net.Listen(network, listen)
	if err != nil {
		return nil, err
	}
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}
	}()
	return func() { _ = l.Close() }, nil
}

// TestTablesAreAsMeant checks the tables that the kernel has: two, each with a map of two protocols for each Service.
func TestTablesAreAsMeant(t *testing.T) {
	services := []lab.Service{service(1, 1), service(2, 2)}
	inNamespace(t, nil, func() error {
		if err := nft.DNAT(services).Apply(nil); errors.Is(err, result.ErrNotSupported) {
			t.Skip(err)
		} else if err != nil {
			return err
		}
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		tables, err := conn.ListTables()
		if err != nil || len(tables) != 2 {
			t.Errorf("there are %d tables, %v; want 2", len(tables), err)
		}
		for _, table := range tables {
			set, err := conn.GetSetByName(table, "endpoints")
			if err != nil {
				return err
			}
			elements, err := conn.GetSetElements(set)
			if err != nil || len(elements) != 2*len(services) {
				t.Errorf("table %s has %d elements, %v; want %d", table.Name, len(elements), err, 2*len(services))
			}
		}
		return nil
	})
}

func TestExtendKnowsThePodsOfThePlan(t *testing.T) {
	var nodesOnly lab.Plan
	nodesOnly.Namespace(lab.Node(1))
	nft.Extend(&nodesOnly, lab.Default())
	if len(nodesOnly.Steps) != 0 {
		t.Errorf("a plan without pods got Services:\n%s", nodesOnly)
	}
}
