package program

import (
	"context"
	"io"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/load/netload"
)

// A pod is a host behind three streams, like an exec into a container.
type pod struct {
	remote.Host
	cut func() // cuts the connection
	err error  // of the last command
}

func (p *pod) Name() string   { return p.Host.Name }
func (*pod) Addr() netip.Addr { return netip.MustParseAddr("127.0.0.1") }
func (*pod) CPUs() []int      { return nil }
func newPod(name string) *pod {
	p := &pod{Host: remote.Host{Name: name, Agent: "/proc/self/exe"}}
	p.Exec = func(ctx context.Context, args []string, s remote.Streams) error {
		ctx, p.cut = context.WithCancel(ctx)
		c := exec.CommandContext(ctx, args[0], args[1:]...)
		c.Stdout, c.Stderr = s.Stdout, s.Stderr
		c.WaitDelay = time.Second
		in, err := c.StdinPipe()
		if err != nil {
			return err
		}
		go func() { _, _ = io.Copy(in, s.Stdin) }()
		p.err = c.Run()
		return p.err
	}
	return p
}

// TestThroughSupervisor checks that agents behind a supervisor live as long as their pool, and that a cut connection
// loses only one run.
func TestThroughSupervisor(t *testing.T) {
	pool := agent.NewPool()
	defer pool.Close()
	near, far := newPod("client"), newPod("server")
	client, server := pool.On(near), pool.On(far)
	w := netload.Spec{Kind: netload.TCPRR}
	for range 2 {
		runBetween(t, client, server, w, nil)
	}
	w.Duration = time.Minute
	w, err := w.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Do[processState](t.Context(), server, serverRequest(w), func(e agent.Event) {
		if e.Event == agent.Ready {
			far.cut()
		}
	})
	if err == nil {
		t.Error("a connection that was cut carried a result")
	}
	runBetween(t, client, server, netload.Spec{Kind: netload.UDPRR}, nil)
	pool.Close()
	if near.err != nil || far.err != nil { // an agent that does not end is killed
		t.Errorf("the agents ended with %v and %v", near.err, far.err)
	}
	if n := len(children(t)); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}

var _ host.Host = (*pod)(nil)
