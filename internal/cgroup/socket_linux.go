package cgroup

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Control replaces the socket of a net.Dialer, before it is used, by one that was opened in the group. It is for the
// dialer's field Control. A socket permanently belongs to the group of the process that opened it; so a short-lived
// copy of this process, which shares only its descriptors, is started in the group to open the socket.
func (g *Group) Control(_, _ string, conn syscall.RawConn) error {
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = g.replace(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// replace replaces fd by a new socket of the same kind that was opened in the group.
func (g *Group) replace(fd int) error {
	var kind [3]int
	for i, option := range []int{unix.SO_DOMAIN, unix.SO_TYPE, unix.SO_PROTOCOL} {
		var err error
		if kind[i], err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil {
			return fmt.Errorf("what kind of socket to open in control group %s: %w", g.dir, err)
		}
	}
	kind[1] |= unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC
	args := cloneArgs{flags: unix.CLONE_FILES | unix.CLONE_INTO_CGROUP, cgroup: uint64(g.file.Fd())}
	pid, errno := openInGroup(&args, fd, kind)
	if errno != 0 {
		return fmt.Errorf("starting a process in control group %s: %w", g.dir, errno)
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, unix.WALL, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(pid, &status, unix.WALL, nil)
	}
	if err != nil {
		return fmt.Errorf("waiting for a process in control group %s: %w", g.dir, err)
	}
	if status.ExitStatus() != 0 {
		return fmt.Errorf("opening a socket in control group %s: %w", g.dir, unix.Errno(max(status.ExitStatus(), 1)))
	}
	return nil
}

// cloneArgs is struct clone_args of clone3(2) as of Linux 5.7.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// openInGroup starts a copy of this process, which opens a socket, duplicates it to fd, and exits with the error's
// number. The copy has one thread and must not use Go's memory management, so it only makes system calls.
//
//go:noinline
//go:norace
//go:nosplit
func openInGroup(args *cloneArgs, fd int, kind [3]int) (int, unix.Errno) {
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args), 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	s, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(kind[0]), uintptr(kind[1]), uintptr(kind[2]))
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_DUP3, s, uintptr(fd), unix.O_CLOEXEC)
		unix.RawSyscall(unix.SYS_CLOSE, s, 0, 0)
	}
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
	}
}
