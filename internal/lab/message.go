//go:build linux

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Kinds of requests.
const (
	doProbe    = "probe" // check whether the kernel has what a datapath needs for a path
	doFeatures = "find"  // check which features the kernel has
	doOpen     = "open"  // make a site and check its places
	doExec     = "exec"  // run a command in a namespace of a site; answered when it has ended
	doKill     = "kill"  // kill a command and all its children; only the command's doExec is answered
	doClose    = "close" // close a site; answered when the kernel has removed it
)

// maxMessage is the largest message, in bytes. The kernel's limit, the socket's buffer, is larger.
const maxMessage = 128 << 10

// A request is a message to the holder. The descriptors of a command's streams are sent with it.
type request struct {
	ID         int                 `json:"id"`
	Do         string              `json:"do"`
	Datapath   string              `json:"datapath,omitempty"`
	Topology   Topology            `json:"topology,omitzero"`
	Path       result.Path         `json:"path,omitempty"`       // of doProbe
	Placements []targets.Placement `json:"placements,omitempty"` // of doOpen
	Site       int                 `json:"site,omitempty"`
	Host       string              `json:"host,omitempty"`
	Args       []string            `json:"args,omitempty"`
	Kill       int                 `json:"kill,omitempty"` // ID of the doExec request
}

// A reply is a message from the holder.
type reply struct {
	ID     int       `json:"id"`
	Error  *failure  `json:"error,omitempty"`
	Site   *SiteInfo `json:"site,omitempty"`
	Status int       `json:"status,omitempty"` // of a command; -1: ended by a signal
	Found  []Finding `json:"found,omitempty"`
}

// A SiteInfo describes a site that the holder has made.
type SiteInfo struct {
	ID     int         `json:"id"`
	Places []PlaceInfo `json:"places"` // one for each placement, in that order
}

// A PlaceInfo describes a place that the holder has checked, or has the reason why there is none.
type PlaceInfo struct {
	Ends
	MTU     int           `json:"mtu,omitempty"` // bytes, of the client's device
	Facts   []result.Fact `json:"facts,omitempty"`
	Failure *failure      `json:"failure,omitempty"` // nil, or nothing else is set
}

// Err returns the reason why there is no such place; nil if there is one.
func (p PlaceInfo) Err() error { return p.Failure.err() }

// A Host is a host of a site: the name of its namespace, and its address.
type Host struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
}

// A failure is an error as it is sent through the socket: its text, and which of two errors it Is.
type failure struct {
	Text         string `json:"text"`
	NotSupported bool   `json:"not_supported,omitempty"`
	NoCommand    bool   `json:"no_command,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{err.Error(), errors.Is(err, result.ErrNotSupported), errors.Is(err, host.ErrNoCommand)}
}

// err returns an error with the text of f that Is the same errors; nil if f is nil.
func (f *failure) err() error {
	switch {
	case f == nil:
		return nil
	case f.NotSupported:
		return result.NotSupported(f.Text)
	case f.NoCommand:
		return fmt.Errorf("%s: %w", f.Text, host.ErrNoCommand)
	}
	return errors.New(f.Text)
}

// A link is one end of the control socket. Concurrent sends are safe, since the kernel keeps messages whole.
type link struct{ conn *net.UnixConn }

// newLinkPair makes the control socket: an end for this process, and one for the holder to inherit.
func newLinkPair() (*link, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make the control socket of the lab: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "lab control")
	ours := os.NewFile(uintptr(fds[0]), "lab control")
	l, err := newLink(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return l, theirs, nil
}

// newLink returns a link with a duplicate of file's descriptor, and closes file.
func newLink(file *os.File) (*link, error) {
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("control socket of the lab: %w", err)
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("the control socket of the lab is not a Unix socket"), conn.Close())
	}
	return &link{c}, nil
}

func (l *link) send(message any, files ...*os.File) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("a message to the lab of %d bytes; the most is %d", len(data), maxMessage)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = l.conn.WriteMsgUnix(data, rights, nil)
	return err
}

// receive reads a message and the descriptors that were sent with it. It returns io.EOF when the other process has
// ended.
func (l *link) receive(message any) ([]*os.File, error) {
	data, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(8*4))
	n, rn, flags, _, err := l.conn.ReadMsgUnix(data, rights)
	if err != nil {
		return nil, err
	}
	files, err := descriptors(rights[:rn])
	if err != nil {
		return nil, err
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeAll(files)
		return nil, errors.New("a message of the lab was cut")
	}
	if err := json.Unmarshal(data[:n], message); err != nil {
		closeAll(files)
		return nil, fmt.Errorf("message of the lab: %w", err)
	}
	return files, nil
}

func descriptors(rights []byte) ([]*os.File, error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("descriptors from the lab: %w", err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("descriptors from the lab: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
