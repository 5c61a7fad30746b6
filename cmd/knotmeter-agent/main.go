// Command knotmeter-agent runs in pods: it is the agent, and what a pod needs besides. It reads requests from standard
// input and writes events to standard output; 'knotmeter run' starts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/agentprogram"
)

func main() {
	// Generators pin threads, change their priority and throw them away, which the main thread cannot be.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := agentprogram.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err == nil {
		return
	}
	if !errors.Is(err, agent.ErrFailed) {
		fmt.Fprintln(os.Stderr, "knotmeter-agent:", err)
	}
	os.Exit(1)
}
