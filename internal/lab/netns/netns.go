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

// ownNamespace is the file of the calling thread's namespace.
const ownNamespace = "/proc/thread-self/ns/net"

// An NS is a network namespace, held by a file descriptor. It is safe for concurrent use until it is closed.
type NS struct{ file *os.File }

// New makes a namespace. Its loopback device is down.
func New() (*NS, error) {
	var ns *NS
	err := WithSwitcher(func(s *Switcher) (err error) {
		ns, err = s.New()
		return err
	})
	return ns, err
}

// Current returns the namespace of the calling thread. The caller must hold runtime.LockOSThread.
func Current() (*NS, error) {
	file, err := os.Open(ownNamespace)
	if err != nil {
		return nil, fmt.Errorf("open the network namespace: %w", err)
	}
	return &NS{file}, nil
}

// File returns the open file that holds the namespace. The NS still owns it.
func (n *NS) File() *os.File { return n.file }

// Fd returns the descriptor. The NS still owns it.
func (n *NS) Fd() int { return int(n.file.Fd()) }

// ID returns the namespace's inode number, which is unique among existing namespaces.
func (n *NS) ID() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(n.Fd(), &st); err != nil {
		return 0, fmt.Errorf("network namespace: %w", err)
	}
	return st.Ino, nil
}

// Close releases the namespace. The kernel removes it some time after nothing else holds it.
func (n *NS) Close() error { return n.file.Close() }

// closeRangeFrom is the first descriptor to which CloseAll moves descriptors: above most in use, below the usual limit
// of 1024 open files.
const closeRangeFrom = 512

// CloseAll releases namespaces as simultaneously as possible. The kernel removes namespaces in batches, and a batch
// takes about the same time however large it is.
func CloseAll(all []*NS) error {
	// One system call closes a range of descriptors, so they are first duplicated into a range. If other descriptors are
	// between them, each part takes a call.
	var errs []error
	first, last := -1, -2 // the range that is not closed yet; empty if last < first
	flush := func() {
		if last >= first {
			errs = append(errs, unix.CloseRange(uint(first), uint(last), 0))
		}
	}
	for _, n := range all {
		fd, err := unix.FcntlInt(n.file.Fd(), unix.F_DUPFD_CLOEXEC, closeRangeFrom)
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

// Do runs f in the namespace, in a new goroutine that is locked to its thread, and returns f's error.
//
// Sockets that f opens and processes that it starts are in the namespace and remain there. Goroutines that f starts are
// not in it. f must not start a process with Pdeathsig: the kernel kills it when the thread that started it ends, and
// that may be at any time.
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

// A Switcher moves one thread between namespaces, for work with many steps in many namespaces. It is valid only within
// the function given to [WithSwitcher].
type Switcher struct {
	current *NS // nil if the thread is in a namespace that is not known, as at the beginning
}

// Enter moves the thread into n, unless it is there already.
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

// WithSwitcher runs f with a Switcher, in a new goroutine that is locked to its thread.
func WithSwitcher(f func(s *Switcher) error) error {
	return onThread(func() error { return f(&Switcher{}) })
}

// onThread runs f on a locked thread and returns the thread to its original namespace. If that fails, the goroutine
// ends locked, which ends the thread.
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

// WriteSysctl writes a setting of the calling thread's namespace, such as "net.ipv4.ip_forward"; a slash stands for a
// dot within a device's name. To reach another namespace, call it within [NS.Do] or after [Switcher.Enter]. A name
// outside net is an error, since it does not belong to a network namespace.
func WriteSysctl(name, value string) error {
	path, err := sysctlPath(name)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(value), 0)
}

// ReadSysctl reads a setting, with the names and the namespace of [WriteSysctl].
func ReadSysctl(name string) (string, error) {
	path, err := sysctlPath(name)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}

// sysctlPath returns the file of a setting.
func sysctlPath(name string) (string, error) {
	// Clean, so that no ".." leads out of net.
	path := filepath.Clean("/proc/sys/" + strings.NewReplacer(".", "/", "/", ".").Replace(name))
	if !strings.HasPrefix(path, "/proc/sys/net/") {
		return "", fmt.Errorf("sysctl %s does not belong to a network namespace", name)
	}
	return path, nil
}
