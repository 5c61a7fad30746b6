//go:build unix

package remote

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Wait runs as the first process of a container. Until ctx ends, it only reaps orphaned children of commands, which the
// kernel reparents to it.
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
