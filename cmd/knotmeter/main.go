// Command knotmeter measures and compares Kubernetes networks and the datapaths of this machine's
// kernel. Everything it does is in internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/knotmeter/knotmeter/internal/cli"
)

// version is set when the program is built.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cli.Main(ctx, cli.StandardStreams(), version, os.Args[1:]))
}
