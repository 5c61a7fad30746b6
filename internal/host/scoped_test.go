package host

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
)

// A sleeper is a host whose commands run until they are killed.
type sleeper struct{ began, ended int }

func (*sleeper) Name() string     { return "bed" }
func (*sleeper) Addr() netip.Addr { return netip.Addr{} }
func (*sleeper) CPUs() []int      { return nil }

func (s *sleeper) Run(ctx context.Context, _ Cmd) error {
	s.began++
	<-ctx.Done()
	s.ended++
	return context.Cause(ctx)
}

func TestScoped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bed := &sleeper{}
		h := NewScoped(bed)
		own, cancel := context.WithCancelCause(t.Context())
		tired := errors.New("tired")
		cancel(tired)
		if err := h.Run(own, Cmd{Args: []string{"a"}}); !errors.Is(err, tired) {
			t.Errorf("a command that its own context ends: %v", err)
		}
		var err error
		go func() { err = h.Run(t.Context(), Cmd{Args: []string{"b"}}) }()
		synctest.Wait()
		if err != nil {
			t.Errorf("before the end: %v", err)
		}
		h.End()
		if bed.ended != 2 {
			t.Error("End returned before the command ended")
		}
		synctest.Wait()
		if err == nil || err.Error() != "the site is closed" {
			t.Errorf("a command that End ends: %v", err)
		}
		h.End()
		err = h.Run(t.Context(), Cmd{Args: []string{"c", "d"}})
		if err == nil || err.Error() != "on bed: c d: the site is closed" || bed.began != 2 {
			t.Errorf("a command after the end: %v", err)
		}
	})
}

func TestTail(t *testing.T) {
	var last Tail
	var all strings.Builder
	w := last.Tee(&all)
	for _, text := range []string{" one ", strings.Repeat("x", tailSize), " two \n"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if want := strings.Repeat("x", tailSize-6) + " two"; last.String() != want || all.Len() != tailSize+11 {
		t.Errorf("%d bytes of %d: %q", len(last.String()), all.Len(), last.String())
	}
	if last.Tee(nil) != &last {
		t.Error("without a writer, Tee does not return the tail itself")
	}
}
