package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends at the first SIGINT, SIGTERM or SIGHUP, so that the program can clean up. A
// second signal ends the program at once, except SIGHUP: a closing terminal or session may send more than one.
func Signals() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	context.AfterFunc(ctx, stop)
	// Notify turns SIGPIPE into an error of the write, without a reader of the channel. Unlike Ignore, it is not
	// inherited by programs that this one starts.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx
}
