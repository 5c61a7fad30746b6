//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// Delayed returns an op that makes a pair of devices like that of [Veth], of which the first delays packets: the holder
// carries them between two TAP devices.
func Delayed(l netns.Link, peer, peerNS string, delay time.Duration) Op {
	return Op{
		Text:    fmt.Sprintf("%s type tap peer %s in %s delay %v", linkAdd(l), peer, peerNS, delay),
		Apply:   func(e *Env) error { return addDelayed(e, l, peer, peerNS, delay) },
		Feature: "TAP devices",
		Probe: func(*Env) error {
			fd, err := makeTap(scratch)
			if err != nil {
				return explainTap(err)
			}
			return unix.Close(fd)
		},
	}
}

// addDelayed makes both devices and starts the forwarder between them.
func addDelayed(e *Env, l netns.Link, peer, peerNS string, delay time.Duration) error {
	near, err := makeTap(l.Name)
	if err != nil {
		return explainTap(err)
	}
	far := -1
	there, ok := e.namespaces.spaces[peerNS]
	if !ok {
		return errors.Join(fmt.Errorf("there is no namespace %s", peerNS), unix.Close(near))
	}
	err = there.ns.Do(func() (err error) {
		far, err = makeTap(peer)
		return err
	})
	if err != nil {
		return errors.Join(err, unix.Close(near))
	}
	f, err := forward(near, far, delay, 0)
	if err != nil {
		return err
	}
	e.OnClose(f.Close)
	if err := e.Netlink().Set(l.Name, l.MTU, l.MAC); err != nil {
		return err
	}
	return there.netlink.Set(peer, l.MTU, nil)
}

// explainTap turns the errors for missing TAP devices into a NotSupported error.
func explainTap(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, os.ErrPermission) {
		const missing = "a delay needs TAP devices, which this kernel or user does not have (/dev/net/tun, CONFIG_TUN): "
		return result.NotSupported(missing + err.Error())
	}
	return err
}
