package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Scoped host is one for as long as its site is open: End ends all commands that run on it.
type Scoped struct {
	Host
	scope   context.Context
	cancel  context.CancelCauseFunc
	running sync.RWMutex // held for reading by each command
}

// NewScoped makes h a host until End.
func NewScoped(h Host) *Scoped {
	scope, cancel := context.WithCancelCause(context.Background())
	return &Scoped{Host: h, scope: scope, cancel: cancel}
}

// errClosed is what commands end with after End.
var errClosed = errors.New("the site is closed")

// Run runs c on the host within the scope, whose end has the same effect as that of ctx.
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

// End ends all commands and returns when they are gone. None is started after it. It may be called again.
func (s *Scoped) End() {
	s.cancel(errClosed)
	s.running.Lock()
	defer s.running.Unlock()
}
