//go:build unix

package store

import (
	"errors"
	"fmt"
	"os"

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
