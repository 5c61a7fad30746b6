// Package agentprogram is the program that runs on hosts: the agent with its table of verbs, and the commands that
// a pod needs besides. It stands between the protocol and what carries requests out: load generators, and looks at
// a place.
package agentprogram

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/api/kubeapi"
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/trial"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/preflight"
)

// Run is the whole program: args say what it does. Without any it is an agent.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{remote.AgentCommand}
	}
	switch args[0] {
	case remote.AgentCommand:
		return Serve(ctx, stdin, stdout)
	case remote.ExecCommand:
		return remote.Serve(ctx, remote.Streams{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args[1:])
	case remote.WaitCommand:
		return remote.Wait(ctx)
	case remote.DigestCommand:
		return digest(stdout)
	case remote.RespondCommand:
		return trial.Respond(ctx, args[1:])
	}
	return fmt.Errorf("unknown agent command %q; 'knotmeter run' starts the agent", args[0])
}

// Serve is the agent with all its verbs. It ends with its input and with its parent.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go followParent(ctx, cancel)
	return agent.Serve(ctx, stdin, stdout, agent.Program{Version: netload.Version(), Verbs: Verbs()})
}

// Verbs is all that an agent can be asked for.
func Verbs() map[string]agent.Handler {
	net := netCarrier{watch: netload.IdleLevel}
	return map[string]agent.Handler{
		netload.Verb:   agent.Handle(net.carry),
		preflight.Verb: agent.Handle(carryPreflight),
		webapp.Verb:    agent.Handle(plain(webapp.Run)),
		api.Verb:       agent.Handle(plain(kubeapi.Run)),
		dynamics.Verb:  agent.Handle(plain(trial.Do)),
		vault.Verb:     agent.Handle(plain(vault.Run)),
		vault.TaskVerb: agent.Handle(plain(func(ctx context.Context, e vault.Task) (vault.Outcome, error) {
			return e.Run(ctx)
		})),
	}
}

// plain makes of a function what a verb needs that has no token, and says nothing before its result.
func plain[B, R any](do func(context.Context, B) (R, error)) func(context.Context, agent.Call, B) (R, error) {
	return func(ctx context.Context, _ agent.Call, body B) (R, error) { return do(ctx, body) }
}

// A netCarrier carries out runs of the network's generator. It watches the machine's idle level before the first of
// them: an agent lives as long as its site, so that each block has a level of its own, of the machine that it is on.
type netCarrier struct {
	watch func(time.Duration) (float64, error)

	mu   sync.Mutex
	idle *float64 // busy CPUs of the idle machine; nil until it was watched
}

func (n *netCarrier) carry(ctx context.Context, call agent.Call, c netload.Config) (netload.Report, error) {
	if err := c.Token.UnmarshalText([]byte(call.Token)); err != nil {
		return netload.Report{}, err
	}
	c.Watch = n.idleLevel
	return netload.Run(ctx, c, func(at netip.AddrPort) { call.Say(agent.Ready, at) })
}

// idleLevel returns the machine's idle level, for which it watches the machine for so long unless it has done so; 0 is
// not at all.
func (n *netCarrier) idleLevel(d time.Duration) (float64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.idle == nil {
		if d <= 0 {
			return 0, nil
		}
		level, err := n.watch(d)
		if err != nil {
			return 0, err
		}
		n.idle = &level
	}
	return *n.idle, nil
}

func carryPreflight(ctx context.Context, call agent.Call, s preflight.Spec) (preflight.Report, error) {
	s.Token = call.Token
	return preflight.Run(ctx, s, netload.Version())
}

// digest writes the SHA-256 of this program, in hexadecimal.
func digest(out io.Writer) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open(own)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%x\n", sum.Sum(nil))
	return err
}

// parentInterval is how often an agent looks whether its parent still lives.
const parentInterval = 500 * time.Millisecond

// followParent cancels when the parent is gone, which shows in another process having taken its place.
// The kernel's own signal for that (PR_SET_PDEATHSIG) is sent when the thread that started the agent
// ends, and the threads of a Go program come and go; so the agent looks.
func followParent(ctx context.Context, cancel context.CancelCauseFunc) {
	parent := os.Getppid()
	tick := time.NewTicker(parentInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				cancel(errors.New("the agent's parent is gone"))
				return
			}
		}
	}
}
