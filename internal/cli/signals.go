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

// await returns what do returns, or the error of an interruption as soon as ctx ends. do is then abandoned and runs
// until the program ends, so it must leave nothing behind: it only reads files, or asks servers.
func await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, stopped(ctx, "")
	}
}
