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
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/api/kubeapi"
	"github.com/knotmeter/knotmeter/internal/family/app/vault"
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/trial"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
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
	return map[string]agent.Handler{
		netload.Verb:   agent.Handle(carryNet),
		preflight.Verb: agent.Handle(carryPreflight),
		webapp.Verb:    agent.Handle(plain(webapp.Run)),
		api.Verb:       agent.Handle(plain(kubeapi.Run)),
		dynamics.Verb:  agent.Handle(plain(trial.Do)),
		vault.Verb:     agent.Handle(plain(vault.Run)),
		vault.ErrandVerb: agent.Handle(plain(func(ctx context.Context, e vault.Errand) (vault.Outcome, error) {
			return e.Run(ctx)
		})),
	}
}

// plain makes of a function what a verb needs that has no token, and says nothing before its result.
func plain[B, R any](do func(context.Context, B) (R, error)) func(context.Context, agent.Call, B) (R, error) {
	return func(ctx context.Context, _ agent.Call, body B) (R, error) { return do(ctx, body) }
}

func carryNet(ctx context.Context, call agent.Call, c netload.Config) (netload.Report, error) {
	if err := c.Token.UnmarshalText([]byte(call.Token)); err != nil {
		return netload.Report{}, err
	}
	return netload.Run(ctx, c, func(at netip.AddrPort) { call.Say(agent.Ready, at) })
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
