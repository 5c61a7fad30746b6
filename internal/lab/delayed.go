//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/result"
)

// A Delayed is a Veth that delays packets from the end Name: the holder carries them between two TAP devices.
type Delayed struct {
	Veth
	Delay time.Duration // delay of each packet
}

func (o Delayed) String() string {
	return fmt.Sprintf("link add %s%s mtu %d type tap peer %s in %s delay %v",
		o.Name, address(o.MAC), o.MTU, o.Peer, o.PeerNS, o.Delay)
}

// Apply makes both devices and starts the forwarder between them.
func (o Delayed) Apply(e *Env) error {
	near, err := makeTap(o.Name)
	if err != nil {
		return explainTap(err)
	}
	far := -1
	peer, ok := e.namespaces.spaces[o.PeerNS]
	if !ok {
		return errors.Join(fmt.Errorf("there is no namespace %s", o.PeerNS), unix.Close(near))
	}
	err = peer.ns.Do(func() (err error) {
		far, err = makeTap(o.Peer)
		return err
	})
	if err != nil {
		return errors.Join(err, unix.Close(near))
	}
	f, err := forward(near, far, o.Delay, 0)
	if err != nil {
		return err
	}
	e.OnClose(f.Close)
	if err := e.Netlink().Set(o.Name, o.MTU, o.MAC); err != nil {
		return err
	}
	return peer.netlink.Set(o.Peer, o.MTU, nil)
}

// Feature returns the name of the feature that Probe tries.
func (o Delayed) Feature() string { return "TAP devices" }

// Probe makes one TAP device.
func (o Delayed) Probe(*Env) error {
	fd, err := makeTap(scratch)
	if err != nil {
		return explainTap(err)
	}
	return unix.Close(fd)
}

// explainTap turns the errors for missing TAP devices into a NotSupported error.
func explainTap(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrPermission) {
		const missing = "a delay needs TAP devices, which this kernel or user does not have (/dev/net/tun, CONFIG_TUN): "
		return result.NotSupported(missing + err.Error())
	}
	return err
}
