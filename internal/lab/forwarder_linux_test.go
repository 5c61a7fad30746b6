package lab

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// framePair returns a pair of packet sockets in place of a TAP device. They keep the boundaries of frames too.
func framePair(t *testing.T) (device, wire int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[1], true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]) })
	return fds[0], fds[1]
}

func TestFramesArriveInOrderAndNotBeforeTheirTime(t *testing.T) {
	left, a := framePair(t)
	right, b := framePair(t)
	const wait = 20 * time.Millisecond
	f, err := forward(a, b, wait, 0)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range 10 {
		if _, err := unix.Write(left, []byte{byte(i), 1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 16)
	for i := range 10 {
		n, err := unix.Read(right, got)
		if err != nil || !bytes.Equal(got[:n], []byte{byte(i), 1, 2}) {
			t.Fatalf("frame %d: %v, %v", i, got[:n], err)
		}
		if took := time.Since(began); took < wait {
			t.Fatalf("frame %d after %v, before its %v", i, took, wait)
		}
	}
	if _, err := unix.Write(right, []byte("back")); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(left, got); err != nil || string(got[:n]) != "back" {
		t.Fatalf("back: %q, %v", got[:n], err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
