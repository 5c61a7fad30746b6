package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryLock takes an advisory lock on an open directory, or returns an error that wraps ErrLocked if another process
// holds it. The kernel releases the lock when the file is closed, even by a crash.
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

// linkCount returns the number of hard links of a file.
func linkCount(info fs.FileInfo) uint64 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return uint64(s.Nlink)
	}
	return 1
}
