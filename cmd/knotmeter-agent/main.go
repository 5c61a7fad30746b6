// Command knotmeter-agent runs in pods and namespaces: one side of one run. It reads a specification
// from standard input and writes events to standard output; people have no use for it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/agent"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := agent.Main(ctx, os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		os.Exit(1)
	}
}
