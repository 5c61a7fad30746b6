//go:build unix

package remote

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Wait is the first process of a container: it does nothing until ctx ends, but for the children of
// commands that ended before them, which become its own and have to be taken note of.
func Wait(ctx context.Context) error {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-children:
			reap()
		}
	}
}

func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
