package site

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// Host is one end as a host, with an agent that lives as long as the pods.
func (g *Group) Host(r manifest.Role) host.Host {
	exec := g.Cluster.Exec(g.Plan.Namespace, g.Plan.Name(r))
	bound := func(ctx context.Context, args []string, streams remote.Streams) error {
		held, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(g.life, func() { cancel(errors.New("the pod is removed")) })()
		return exec(held, args, streams)
	}
	address, _ := g.address(r) // the client's may be unknown, and nothing listens there
	return g.crew.On(&end{group: g, address: address,
		remote: remote.Host{Name: g.Plan.HostName(r), Agent: g.Plan.AgentPath(), Exec: bound}})
}

// complaintTime is how long a script may go on that has complained. When it has ended without reading all of its input,
// its connection does not end.
const complaintTime = time.Second

// A speech is what a far end says, which may still say it when nobody listens any more.
type speech struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first func() // called when it begins to speak
}

func (s *speech) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first != nil && s.text.Len() == 0 {
		s.first()
	}
	return s.text.Write(b)
}

func (s *speech) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shell is that of one end's container, which needs no agent.
func (g *Group) shell(r manifest.Role) shell {
	exec := g.Cluster.Exec(g.Plan.Namespace, g.Plan.Name(r))
	return func(ctx context.Context, stdin io.Reader, script string, args ...string) (string, string, error) {
		ended, cancel := context.WithCancel(ctx)
		defer cancel()
		var out, errs speech
		errs.first = func() { time.AfterFunc(complaintTime, cancel) }
		command := append([]string{"sh", "-c", script, manifest.InjectPath}, args...)
		err := exec(ended, command, remote.Streams{Stdin: stdin, Stdout: &out, Stderr: &errs})
		return out.String(), errs.String(), err
	}
}

// An end is a host of a group.
type end struct {
	group   *Group
	remote  remote.Host
	address netip.Addr
}

func (e *end) Name() string { return e.remote.Name }

func (e *end) Addr() netip.Addr { return e.address }

// CPUs are not chosen: which ones a pod may have is the node's own matter.
func (e *end) CPUs() []int { return nil }

func (e *end) Run(ctx context.Context, c host.Cmd) error {
	err := e.group.lost(ctx, e.remote.Run(ctx, c))
	if err != nil {
		e.group.failed.Store(true)
	}
	return err
}

// Errand has the client's agent do something at a Vault.
func (g *Group) Errand(ctx context.Context, e vault.Errand) (vault.Outcome, error) {
	return agent.Do[vault.Outcome](ctx, g.Host(manifest.Client), agent.Request{Verb: vault.ErrandVerb, Body: e}, nil)
}
