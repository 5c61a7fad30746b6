// Command knotmeter-agent runs in pods and namespaces: one side of one run, and what a pod needs for it. It
// reads a specification from standard input and writes events to standard output; people have no use for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := agent.Program(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err == nil {
		return
	}
	if !errors.Is(err, agent.ErrReported) {
		fmt.Fprintln(os.Stderr, "knotmeter-agent:", err)
	}
	os.Exit(1)
}
