package machine

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// frameSnap is how much of a frame is kept, in bytes: enough for all headers of any datapath, and a token.
	frameSnap = 512
	// captureBuffer is the size of the socket's buffer in bytes, several times what a check sends.
	captureBuffer = 4 << 20
	// ignoreOutgoing is PACKET_IGNORE_OUTGOING of <linux/if_packet.h>.
	ignoreOutgoing = 23
)

// A Capture records the frames of all Ethernet devices of a network namespace. The kernel records a frame before it
// forwards or delivers it, so that once a response has arrived, its frames are recorded too.
type Capture struct{ fd int }

// StartCapture captures in the network namespace of the thread, which takes CAP_NET_RAW. If arriving is set, it leaves
// out what devices send.
func StartCapture(arriving bool) (*Capture, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("capture packets: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, captureBuffer)
	if arriving {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, ignoreOutgoing, 1)
	}
	err = errors.Join(err, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL)}))
	if err != nil {
		return nil, fmt.Errorf("capture packets: %w", errors.Join(err, unix.Close(fd)))
	}
	return &Capture{fd}, nil
}

// Frames returns the frames since the last call, up to 512 bytes of each from its Ethernet header on. An error means
// that some may be missing.
func (c *Capture) Frames() ([][]byte, error) {
	var frames [][]byte
	buf := make([]byte, frameSnap)
	for {
		n, from, err := unix.Recvfrom(c.fd, buf, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return frames, c.dropped()
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			continue
		case err != nil:
			return frames, fmt.Errorf("capture packets: %w", err)
		}
		if link, is := from.(*unix.SockaddrLinklayer); is && link.Hatype == unix.ARPHRD_ETHER {
			frames = append(frames, append([]byte(nil), buf[:n]...))
		}
	}
}

// dropped returns an error if the buffer was too small since the last call.
func (c *Capture) dropped() error {
	stats, err := unix.GetsockoptTpacketStats(c.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && stats.Drops > 0 {
		err = fmt.Errorf("capture packets: %d of %d were lost", stats.Drops, stats.Packets)
	}
	return err
}

// Close stops the capture at once, but returns only after every CPU has noticed, some ten milliseconds later.
func (c *Capture) Close() { _ = unix.Close(c.fd) }

func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }
