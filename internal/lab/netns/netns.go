//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// self is the thread's own namespace.
const self = "/proc/thread-self/ns/net"

// A NS is a network namespace, held by a file descriptor. It is safe for concurrent use until it is closed.
type NS struct{ file *os.File }

// New makes a namespace. It has a loopback device, which is down.
func New() (*NS, error) {
	var ns *NS
	err := Each(func(s *Switcher) (err error) {
		ns, err = s.New()
		return err
	})
	return ns, err
}

// Current is the namespace of the calling thread; the caller has locked it.
func Current() (*NS, error) {
	file, err := os.Open(self)
	if err != nil {
		return nil, fmt.Errorf("open the network namespace: %w", err)
	}
	return &NS{file}, nil
}

// File is the open file that holds the namespace. It stays the NS's own.
func (n *NS) File() *os.File { return n.file }

// Fd is the descriptor. It stays the NS's own.
func (n *NS) Fd() int { return int(n.file.Fd()) }

// ID is the namespace's inode, which no other living namespace has.
func (n *NS) ID() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(n.Fd(), &st); err != nil {
		return 0, fmt.Errorf("network namespace: %w", err)
	}
	return st.Ino, nil
}

// Close lets the namespace go. The kernel removes it in its own time once nothing else holds it.
func (n *NS) Close() error { return n.file.Close() }

// apart is where CloseAll gathers descriptors: above those that are in use, below the usual limit.
const apart = 512

// CloseAll lets namespaces go, as nearly at the same time as can be. The kernel removes together what is let go
// together, and a batch takes the same time however large it is.
func CloseAll(all []*NS) error {
	// One system call closes a range of descriptors, so they are first brought into one. Others may lie between them;
	// then it takes a call for each part.
	var errs []error
	first, last := -1, -2
	flush := func() {
		if last >= first && first >= 0 {
			errs = append(errs, unix.CloseRange(uint(first), uint(last), 0))
		}
	}
	for _, n := range all {
		fd, err := unix.FcntlInt(n.file.Fd(), unix.F_DUPFD_CLOEXEC, apart)
		errs = append(errs, err, n.Close())
		if err != nil {
			continue
		}
		if fd != last+1 {
			flush()
			first = fd
		}
		last = fd
	}
	flush()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close network namespaces: %w", err)
	}
	return nil
}

// Do runs f in the namespace, in a goroutine of its own that is locked to its thread, and returns f's error.
//
// Sockets and processes that f starts are in the namespace and stay there. Goroutines that f starts are not in
// it. A process that f starts with Pdeathsig would be killed when the thread ends, which is any time: do not.
func (n *NS) Do(f func() error) error {
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return f()
	})
}

func (n *NS) enter() error {
	if err := unix.Setns(n.Fd(), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace: %w", err)
	}
	return nil
}

// A Switcher moves between namespaces on one thread, for work that has many steps in many namespaces.
type Switcher struct{ current *NS }

// Enter brings the thread into n, if it is not there already.
func (s *Switcher) Enter(n *NS) error {
	if s.current == n {
		return nil
	}
	if err := n.enter(); err != nil {
		return err
	}
	s.current = n
	return nil
}

// New makes a namespace and leaves the thread in it.
func (s *Switcher) New() (*NS, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	s.current = nil
	ns, err := Current()
	if err != nil {
		return nil, err
	}
	s.current = ns
	return ns, nil
}

// Each runs f with a Switcher, in a goroutine of its own that is locked to its thread.
func Each(f func(s *Switcher) error) error {
	return onThread(func() error { return f(&Switcher{}) })
}

// onThread runs f on a locked thread and brings the thread back to where it was. Where that fails, the goroutine
// ends while it is locked, and with it the thread.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		origin, err := Current()
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		err = f()
		if origin.enter() == nil {
			runtime.UnlockOSThread()
		}
		done <- errors.Join(err, origin.Close())
	}()
	return <-done
}

// Sysctl writes a setting below /proc/sys of the calling thread's namespace: "net.ipv4.ip_forward". Only names
// below net. belong to a namespace, so others are an error. A slash stands for a dot within a device's name.
func Sysctl(name, value string) error {
	if !strings.HasPrefix(name, "net.") || strings.Contains(name, "..") || filepath.IsAbs(name) {
		return fmt.Errorf("sysctl %s does not belong to a network namespace", name)
	}
	return os.WriteFile(sysctlPath(name), []byte(value), 0)
}

// ReadSysctl reads a setting of the calling thread's namespace.
func ReadSysctl(name string) (string, error) {
	text, err := os.ReadFile(sysctlPath(name))
	return strings.TrimSpace(string(text)), err
}

func sysctlPath(name string) string {
	return "/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name)
}
