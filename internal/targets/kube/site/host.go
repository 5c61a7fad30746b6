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
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// Host is one end as a host, with an agent that lives as long as the pods.
func (g *Group) Host(r manifest.Role) host.Host { return g.crew.On(g.hosts[r]) }

// A noted host notes whether a command on it ended with an error, so that what it made may be left.
type noted struct {
	host.Host
	failed *atomic.Bool
}

func (n noted) Run(ctx context.Context, c host.Cmd) error {
	err := n.Host.Run(ctx, c)
	if err != nil {
		n.failed.Store(true)
	}
	return err
}

// A Here is this machine as the place from which the API server is asked.
type Here struct {
	Endpoint host.Endpoint
	scope    *host.Scoped
	crew     *agent.Crew
	failed   atomic.Bool
}

// NewHere is this machine until Remove; agent is the command line of this program's agent on it.
func NewHere(e host.Endpoint, agentLine ...string) *Here {
	h := &Here{Endpoint: e, crew: agent.NewCrew()}
	local := host.NewLocal("here", netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil, agentLine...)
	h.scope = host.NewScoped(noted{local, &h.failed})
	return h
}

// Host is the machine with its agent.
func (h *Here) Host() host.Host { return h.crew.On(h.scope) }

// Failed says whether a command ended with an error.
func (h *Here) Failed() bool { return h.failed.Load() }

// Remove ends all commands and returns when they are gone.
func (h *Here) Remove() {
	h.crew.Close()
	h.scope.End()
}

// complaintTime is how long a script may go on that has complained. When it has ended without reading all of its input,
// its connection does not end.
const complaintTime = time.Second

// speechKept is how many bytes of a speech are kept: scripts of ours print less than a hundred.
const speechKept = 16 << 10

// A speech is the beginning of what a far end says, which may still say it when nobody listens any more.
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
	s.text.Write(b[:min(len(b), speechKept-s.text.Len())])
	return len(b), nil
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
	group *Group
	role  manifest.Role
}

func (e end) Name() string { return e.group.Plan.HostName(e.role) }

func (e end) Addr() netip.Addr {
	a, _ := e.group.address(e.role) // the client's may be unknown, and nothing listens there
	return a
}

// CPUs are not chosen: which ones a pod may have is the node's own matter.
func (e end) CPUs() []int { return nil }

func (e end) Run(ctx context.Context, c host.Cmd) error {
	g := e.group
	exec := g.Cluster.Exec(g.Plan.Namespace, g.Plan.Name(e.role))
	pod := remote.Host{Name: e.Name(), Agent: g.Plan.AgentPath(), Exec: exec}
	return g.lost(ctx, pod.Run(ctx, c))
}

// Errand has the client's agent do something at a Vault.
func (g *Group) Errand(ctx context.Context, e vault.Errand) (vault.Outcome, error) {
	return agent.Do[vault.Outcome](ctx, g.Host(manifest.Client), agent.Request{Verb: vault.ErrandVerb, Body: e}, nil)
}
