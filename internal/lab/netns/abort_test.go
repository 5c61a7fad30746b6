//go:build linux

package netns_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/labtest"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
)

// TestAbortConnections checks that open connections are aborted at both ends, over IPv4 and IPv6.
func TestAbortConnections(t *testing.T) {
	for _, loopback := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(loopback, func(t *testing.T) {
			ns := labtest.NewNS(t)
			labtest.In(t, ns, func() error { return labtest.Address("lo", "192.0.2.1/32") })
			var near, far net.Conn
			labtest.In(t, ns, func() error {
				l, err := net.Listen("tcp", loopback)
				if err != nil {
					return err
				}
				defer l.Close()
				if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
					return err
				}
				far, err = l.Accept()
				return err
			})
			defer near.Close()
			defer far.Close()
			labtest.In(t, ns, netns.AbortConnections)
			for _, conn := range []net.Conn{near, far} {
				if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				_, err := conn.Read(make([]byte, 1))
				if !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.ECONNRESET) {
					t.Errorf("%v from %v: %v", conn.LocalAddr(), conn.RemoteAddr(), err)
				}
			}
		})
	}
}
