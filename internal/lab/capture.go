//go:build linux

package lab

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// snap is how much of a frame is kept, in bytes: enough for all headers of any datapath, and the token.
	snap = 512
	// captureBuffer is the size of the socket's buffer in bytes, several times what a check sends.
	captureBuffer = 4 << 20
	// ignoreOutgoing is PACKET_IGNORE_OUTGOING of <linux/if_packet.h>. A frame that the switch sends was recorded when
	// it arrived.
	ignoreOutgoing = 23
)

// A capture records every frame that enters the underlay's switch. The kernel records a frame before the switch
// forwards it, so that once an answer has arrived, its frames are recorded too.
type capture struct{ fd int }

func (s *site) capture() (*capture, error) {
	var c capture
	err := s.namespaces.spaces[Switch].ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		c.fd = fd
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, captureBuffer)
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, ignoreOutgoing, 1)
		err = errors.Join(err, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL)}))
		if err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("capture on the underlay: %w", err)
	}
	return &c, nil
}

// drain returns the frames since the last call.
func (c *capture) drain() ([][]byte, error) {
	var frames [][]byte
	buf := make([]byte, snap)
	for {
		n, _, err := unix.Recvfrom(c.fd, buf, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return frames, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			continue
		case err != nil:
			return frames, fmt.Errorf("capture on the underlay: %w", err)
		}
		frames = append(frames, append([]byte(nil), buf[:n]...))
	}
}

// close stops the capture at once, but returns only after every CPU has noticed, some ten milliseconds later.
func (c *capture) close() { _ = unix.Close(c.fd) }

func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }
