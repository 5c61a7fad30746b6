package lab

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxFrame is the longest frame that is carried, in bytes: an MTU of 65535 and an Ethernet header.
	maxFrame = 65535 + 18
	// maxWaiting is how many frames may wait; further frames are dropped, as by a switch with a full queue.
	maxWaiting = 4096
)

// A forwarder carries Ethernet frames between two TAP devices, each after a fixed delay, until it is closed. It gives
// an underlay a known latency, so that measurements can be compared with the truth.
type forwarder struct {
	a, b int
	stop int // an eventfd that wakes the readers
	done sync.WaitGroup
}

// makeTap makes a TAP device in the namespace of the calling thread and returns its descriptor. The device exists as
// long as the descriptor is open, and may be moved to another namespace.
func makeTap(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("make TAP device %s: %w", name, err), unix.Close(fd))
	}
	return fd, nil
}

// forward carries frames from a to b with the delay out, and from b to a with the delay back. It owns both descriptors,
// which must be non-blocking.
func forward(a, b int, out, back time.Duration) (*forwarder, error) {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forwarder: %w", err), unix.Close(a), unix.Close(b))
	}
	f := &forwarder{a: a, b: b, stop: stop}
	f.carry(a, b, out)
	f.carry(b, a, back)
	return f, nil
}

// Close stops the forwarder and closes its devices.
func (f *forwarder) Close() error {
	one := [8]byte{7: 1}
	if _, err := unix.Write(f.stop, one[:]); err != nil {
		return fmt.Errorf("end a forwarder: %w", err)
	}
	f.done.Wait()
	return errors.Join(unix.Close(f.a), unix.Close(f.b), unix.Close(f.stop))
}

// A delayedFrame is a frame that waits until it is due.
type delayedFrame struct {
	due  time.Time
	data []byte
}

// carry starts the two goroutines of one direction: one reads frames and sets when they are due, the other writes them.
func (f *forwarder) carry(from, to int, wait time.Duration) {
	waiting := make(chan delayedFrame, maxWaiting)
	f.done.Go(func() {
		runtime.LockOSThread()
		defer close(waiting)
		f.read(from, wait, waiting)
	})
	f.done.Go(func() {
		// A locked thread sleeps by itself, because a timer of the Go runtime may be late by a millisecond.
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // ns; by default timers are late by up to 50 µs
		for fr := range waiting {
			sleepUntil(fr.due)
			_, _ = unix.Write(to, fr.data) // a device that is down drops the frame
		}
	})
}

func (f *forwarder) read(from int, wait time.Duration, waiting chan<- delayedFrame) {
	polled := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}, {Fd: int32(f.stop), Events: unix.POLLIN}}
	buffer := make([]byte, maxFrame)
	for {
		if _, err := unix.Poll(polled, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if polled[1].Revents != 0 {
			return
		}
		n, err := unix.Read(from, buffer)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		select {
		case waiting <- delayedFrame{time.Now().Add(wait), append([]byte(nil), buffer[:n]...)}:
		default: // the queue is full: the frame is dropped
		}
	}
}

func sleepUntil(due time.Time) {
	for {
		left := time.Until(due)
		if left <= 0 {
			return
		}
		ts := unix.NsecToTimespec(left.Nanoseconds())
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // after an interruption the loop continues
	}
}
