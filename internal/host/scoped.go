package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Scoped host is valid while its site is open: End ends all commands that run on it.
type Scoped struct {
	Host
	scope   context.Context
	cancel  context.CancelCauseFunc
	running sync.RWMutex // held for reading by each command
}

// NewScoped returns h as a host that is valid until End.
func NewScoped(h Host) *Scoped {
	scope, cancel := context.WithCancelCause(context.Background())
	return &Scoped{Host: h, scope: scope, cancel: cancel}
}

// errClosed is the error of commands that End has ended, and of those that start later.
var errClosed = errors.New("the site is closed")

// Run runs c on the host. End has the same effect as the end of ctx.
func (s *Scoped) Run(ctx context.Context, c Cmd) error {
	s.running.RLock()
	defer s.running.RUnlock()
	if s.scope.Err() != nil {
		return fmt.Errorf("on %s: %s: %w", s.Name(), c, errClosed)
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.scope, func() { cancel(errClosed) })()
	return s.Host.Run(within, c)
}

// End ends all commands and returns when they have ended. No command starts afterwards. It may be called again.
func (s *Scoped) End() {
	s.cancel(errClosed)
	s.running.Lock()
	defer s.running.Unlock()
}
