// Command knotmeter-agent is the agent that 'knotmeter run' starts in pods: it reads requests from standard input and
// writes events to standard output. Subcommands do other work in pods.
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
	"github.com/knotmeter/knotmeter/internal/agent/program"
)

func main() {
	// Generators pin threads, change their priority and then end them. The main thread cannot end, so it is reserved.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := program.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err == nil {
		return
	}
	if !errors.Is(err, agent.ErrFailed) {
		fmt.Fprintln(os.Stderr, "knotmeter-agent:", err)
	}
	os.Exit(1)
}
