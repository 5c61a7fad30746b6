package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A fakeHost is a host in memory that runs run instead of commands.
type fakeHost struct {
	name string
	addr netip.Addr
	cpus []int
	run  func(ctx context.Context, call int, c host.Cmd) error
	call atomic.Int64
	busy atomic.Int64
}

func (f *fakeHost) Name() string     { return f.name }
func (f *fakeHost) Addr() netip.Addr { return f.addr }
func (f *fakeHost) CPUs() []int      { return f.cpus }
func (f *fakeHost) Run(ctx context.Context, c host.Cmd) error {
	f.busy.Add(1)
	defer f.busy.Add(-1)
	return f.run(ctx, int(f.call.Add(1)), c)
}

// prints returns a run that prints text.
func prints(text []byte) func(context.Context, int, host.Cmd) error {
	return func(_ context.Context, _ int, c host.Cmd) error {
		_, err := c.Stdout.Write(text)
		return err
	}
}

// hangs blocks until its context ends.
func hangs(ctx context.Context, _ int, _ host.Cmd) error {
	<-ctx.Done()
	return ctx.Err()
}

// says returns the output of iperf3 with an error.
func says(text string) []byte {
	return fmt.Appendf(nil, `{"start":{"version":"iperf 3.12"},"error":%q}`, text)
}

func TestRunFakes(t *testing.T) {
	refused := says("error - unable to connect to server: Connection refused")
	client, server := read(t, "tcp-forward.client.json"), read(t, "tcp-forward.server.json")
	ready := make(chan struct{})
	missing := func(context.Context, int, host.Cmd) error { return fmt.Errorf("exec: %w", host.ErrNoCommand) }
	for _, test := range []struct {
		name           string
		client, server func(context.Context, int, host.Cmd) error
		want           []string // of the error; none is a measurement
	}{
		{"good", prints(client), prints(server), nil},
		{"refused at first", func(_ context.Context, call int, c host.Cmd) error {
			if call < 4 {
				_, err := c.Stdout.Write(refused)
				return err
			}
			close(ready)
			_, err := c.Stdout.Write(client)
			return err
		}, func(_ context.Context, _ int, c host.Cmd) error {
			<-ready
			_, err := c.Stdout.Write(server)
			return err
		}, nil},
		{"no client", missing, hangs, []string{"iperf3 is not on node1/pod1",
			"apt-get install iperf3", "dnf install iperf3"}},
		{"no server", prints(refused), missing, []string{"iperf3 is not on node2/pod1"}},
		{"port taken", prints(refused), prints(says("error - unable to start listener for connections: Address already in " +
			"use")),
			[]string{"iperf3 server on node2/pod1 says: unable to start listener", "Address already in use"}},
		{"busy", prints(says("error - the server is busy running a test. try again later")),
			hangs, []string{"iperf3 client on node1/pod1 says: the server is busy"}},
		{"no JSON", prints([]byte("Usage: iperf3")), hangs, []string{"iperf3 client on node1/pod1", "Usage: iperf3"}},
		{"exit status", func(_ context.Context, _ int, c host.Cmd) error {
			_, err := io.WriteString(c.Stderr, "iperf3: exiting\niperf3: parameter error - no such option\n\nUsage: "+
				"iperf3\nTry `iperf3 --help' for more information.\n")
			return errors.Join(err, &host.ExitError{Command: c.String(), Host: "node1/pod1", Status: 1})
		}, hangs, []string{"the iperf3 client on node1/pod1 says: parameter error - no such option"}},
		{"exit status alone", func(_ context.Context, _ int, c host.Cmd) error {
			return &host.ExitError{Command: c.String(), Host: "node1/pod1", Status: 1, Stderr: "cannot load a library"}
		}, hangs, []string{"iperf3 client: on node1/pod1", "exit status 1", "cannot load a library"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)
			a, b := p.Client.(*fakeHost), p.Server.(*fakeHost)
			a.run, b.run = test.client, test.server
			m, err := do(t.Context(), p, mustParse(t, "tcp-stream", time.Second, time.Second))
			if (err == nil) != (test.want == nil) {
				t.Fatalf("error %v, wanted %q", err, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(strings.Join(test.want, ""), "install") && !errors.Is(err, result.ErrNotSupported) {
				t.Errorf("%v is not ErrNotSupported", err)
			}
			if len(m.Raw) == 0 || !strings.Contains(string(m.Raw[0].Data), "node1/pod1: iperf3 -c 10.1.0.2") {
				t.Errorf("the commands are not in the raw files: %v", m.Raw)
			}
			if a.busy.Load()+b.busy.Load() != 0 {
				t.Error("something still runs")
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	p := fakePair("10.1.0.2:5201", "10.1.0.2:5201", nil, nil)
	p.Client.(*fakeHost).run, p.Server.(*fakeHost).run = hangs, hangs
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(errors.New("enough")) })
	_, err := do(ctx, p, mustParse(t, "tcp-stream", time.Second, 0))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not context.Canceled", err)
	}
	if p.Client.(*fakeHost).busy.Load()+p.Server.(*fakeHost).busy.Load() != 0 {
		t.Error("something still runs")
	}
}

func TestOutputIsBounded(t *testing.T) {
	c := newSide("server", nil, nil).stdout
	part := make([]byte, 16<<20)
	var err error
	for range 5 {
		if _, err = c.Write(part); err != nil {
			break
		}
	}
	if err == nil || c.Len() > maxOutput {
		t.Errorf("%d bytes were taken, error %v", c.Len(), err)
	}
}
