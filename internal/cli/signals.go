package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends at the first signal to end the program, which then cleans up. A second one ends
// it at once, but for SIGHUP: a terminal or session that goes away may send more than one.
func Signals() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	context.AfterFunc(ctx, stop)
	// That somebody is notified turns SIGPIPE into an error of the write; nobody needs to read the channel. Programs that
	// this one starts do not inherit that, as they would if it was ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx
}
