package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// knotmeter returns a command that runs the measured program. Cancellation interrupts it, so that it can clean up, and
// kills it only after ten seconds.
func knotmeter(ctx context.Context, binary string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, binary, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	return c
}

// output runs a command and returns its standard output. An error includes its standard error, unless c.Stderr is set.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out, fmt.Errorf("%s: %w: %s", c, err, exit.Stderr)
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", c, err)
	}
	return out, nil
}
