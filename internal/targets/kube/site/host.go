package site

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Host returns one end as a host. Its agent lives as long as the pods.
func (g *Group) Host(r manifest.Role) host.Host { return g.agents.On(g.hosts[r]) }

// A failureRecorder is a host that records whether a command failed. The objects of such a command may be left.
type failureRecorder struct {
	host.Host
	failed *atomic.Bool
}

func (r failureRecorder) Run(ctx context.Context, c host.Cmd) error {
	err := r.Host.Run(ctx, c)
	if err != nil {
		r.failed.Store(true)
	}
	return err
}

// A Local is this machine as the client of the API server.
type Local struct {
	Endpoint host.Endpoint
	scope    *host.Scoped
	agents   *agent.Pool
	failed   atomic.Bool
}

// NewLocal returns this machine as a client until Remove; agentLine is the command line of its agent.
func NewLocal(e host.Endpoint, agentLine ...string) *Local {
	h := &Local{Endpoint: e, agents: agent.NewPool()}
	local := host.NewLocal("here", netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil, agentLine...)
	h.scope = host.NewScoped(failureRecorder{local, &h.failed})
	return h
}

// Host returns the machine as a host with its agent.
func (h *Local) Host() host.Host { return h.agents.On(h.scope) }

// Failed reports whether a command failed.
func (h *Local) Failed() bool { return h.failed.Load() }

// Remove ends all commands and returns when they have ended.
func (h *Local) Remove() {
	h.agents.Close()
	h.scope.End()
}

// stderrTime is how long a script may continue after its first output on standard error. The limit is needed because
// the connection of a script that ends without reading all its input would stay open.
const stderrTime = time.Second

// outputLimit is the number of bytes of a script's output that are kept. Our scripts print less than a hundred.
const outputLimit = 16 << 10

// A limitedOutput keeps the beginning of a script's output. It may be written to after its reader has finished.
type limitedOutput struct {
	mu      sync.Mutex
	text    bytes.Buffer
	onFirst func() // called before the first write
}

func (s *limitedOutput) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onFirst != nil && s.text.Len() == 0 {
		s.onFirst()
	}
	s.text.Write(b[:min(len(b), outputLimit-s.text.Len())])
	return len(b), nil
}

func (s *limitedOutput) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shell returns a function that runs scripts in the container of one end. It needs no agent there.
func (g *Group) shell(r manifest.Role) shell {
	exec := g.Cluster.Exec(g.Plan.Namespace, g.Plan.Name(r))
	return func(ctx context.Context, stdin io.Reader, script string, args ...string) (string, string, error) {
		ended, cancel := context.WithCancel(ctx)
		defer cancel()
		var out, errs limitedOutput
		errs.onFirst = func() { time.AfterFunc(stderrTime, cancel) }
		command := append([]string{"sh", "-c", script, manifest.InjectPath}, args...)
		err := exec(ended, command, remote.Streams{Stdin: stdin, Stdout: &out, Stderr: &errs})
		return out.String(), errs.String(), err
	}
}

// A podHost is one end of a group as a host.
type podHost struct {
	group *Group
	role  manifest.Role
}

func (e podHost) Name() string { return e.group.Plan.HostName(e.role) }

func (e podHost) Addr() netip.Addr {
	a, _ := e.group.address(e.role) // a client's may be unknown, which is harmless since nothing listens there
	return a
}

// CPUs returns nil: the node decides which CPUs a pod uses.
func (e podHost) CPUs() []int { return nil }

func (e podHost) Run(ctx context.Context, c host.Cmd) error {
	g := e.group
	exec := g.Cluster.Exec(g.Plan.Namespace, g.Plan.Name(e.role))
	pod := remote.Host{Name: e.Name(), Agent: g.Plan.AgentPath(), Exec: exec}
	return g.explainLost(ctx, pod.Run(ctx, c))
}

// RunVaultTask makes the client's agent carry out a task at a Vault.
func (g *Group) RunVaultTask(ctx context.Context, task vault.Task) (vault.Outcome, error) {
	return agent.Do[vault.Outcome](ctx, g.Host(manifest.Client), agent.Request{Verb: vault.TaskVerb, Body: task}, nil)
}
