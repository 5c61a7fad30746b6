package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// knotmeter is a command of the program that is measured. It is interrupted, not killed, so that it removes what it
// made.
func knotmeter(ctx context.Context, binary string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, binary, args...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	return c
}

// output runs a command and returns what it printed; the error has what it reported, unless that is shown already.
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
