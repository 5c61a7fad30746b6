//go:build unix

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock takes an advisory lock on an open directory, or returns an error that Is ErrLocked when
// another process has it. The kernel gives it back when the file is closed, in whatever way.
func tryLock(d *os.File) error {
	err := unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%w: another process is writing to it; wait for it to end, or choose another --out", ErrLocked)
	}
	if err != nil {
		return fmt.Errorf("lock it: %w", err)
	}
	return nil
}

// linkCount returns how many names a file has.
func linkCount(info fs.FileInfo) uint64 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return uint64(s.Nlink)
	}
	return 1
}
