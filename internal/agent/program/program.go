// Package program implements the program that runs on hosts: the agent, and the other commands that Knotmeter
// runs there. It connects the agent's protocol with the packages that carry out its requests, such as load generators
// and the checks before a run (preflight).
package program

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
	"github.com/knotmeter/knotmeter/internal/family/app/webapp"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/trial"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/load/computeload"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Run runs the command in args; without any it runs the agent.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{remote.AgentCommand}
	}
	switch args[0] {
	case remote.AgentCommand: // handles requests for runs; started on each host of a block
		return ServeAgent(ctx, stdin, stdout)
	case remote.ExecCommand: // supervises another command; started in place of the command, to stop it reliably
		return remote.Serve(ctx, remote.Streams{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args[1:])
	case remote.WaitCommand: // does nothing until a signal; started by the node as the first process of a container
		return remote.Wait(ctx)
	case remote.DigestCommand: // identifies this program; started to check a copy of it in a container
		return digest(stdout)
	case remote.NothingCommand: // ends; started by runs that measure that
		return nil
	case remote.EnterCommand: // becomes another command in a control group; started on this machine for a CPU limit
		return enterGroup(args[1:])
	case remote.RespondCommand: // answers a run's probes; started by the node in pods whose changes are measured
		return trial.Respond(ctx, args[1:])
	}
	return fmt.Errorf("unknown agent command %q; 'knotmeter run' starts the agent", args[0])
}

// ServeAgent runs the agent with all its verbs, the kinds of requests that it handles, until its input or its parent
// process ends.
func ServeAgent(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go cancelWithParent(ctx, os.Getppid(), cancel)
	// The version is that of this whole program and of its compiler.
	return agent.Serve(ctx, stdin, stdout, agent.Program{Version: netload.Version(), Verbs: Verbs()})
}

// Verbs returns the handlers of all requests to an agent, by verb.
func Verbs() map[string]agent.Handler {
	net := netRunner{measure: netload.IdleLevel}
	return map[string]agent.Handler{
		netload.Verb:     agent.Handle(net.run),
		computeload.Verb: agent.Handle(runCompute),
		computeload.ReadingVerb: agent.Handle(resultOnly(func(context.Context, struct{}) (computeload.Reading, error) {
			return computeload.ReadCPUs()
		})),
		preflight.Verb: agent.Handle(runPreflight),
		webapp.Verb:    agent.Handle(resultOnly(webapp.Run)),
		api.Verb:       agent.Handle(resultOnly(kubeapi.Run)),
		dynamics.Verb:  agent.Handle(resultOnly(trial.Do)),
		vault.Verb:     agent.Handle(resultOnly(vault.Run)),
		vault.TaskVerb: agent.Handle(resultOnly(func(ctx context.Context, task vault.Task) (vault.Outcome, error) {
			return task.Run(ctx)
		})),
	}
}

// resultOnly adapts a function to a handler of requests that need no token and have no events before their result.
func resultOnly[B, R any](do func(context.Context, B) (R, error)) func(context.Context, agent.Call, B) (R, error) {
	return func(ctx context.Context, _ agent.Call, body B) (R, error) { return do(ctx, body) }
}

// A netRunner runs the network's load generator. It measures the machine's idle level once, before the first run. A
// site is opened for each block, and its agents end with it, so the level is measured once per block.
type netRunner struct {
	measure func(time.Duration) (float64, error) // measures the idle level

	mu   sync.Mutex
	idle *float64 // mean number of busy CPUs while nothing runs; nil until measured
}

func (n *netRunner) run(ctx context.Context, call agent.Call, c netload.Config) (netload.Report, error) {
	// The token is a field of the call and not of its body, so that records of requests can leave it out.
	if err := c.Token.UnmarshalText([]byte(call.Token)); err != nil {
		return netload.Report{}, err
	}
	c.Watch = n.idleLevel
	return netload.Run(ctx, c, func(at netip.AddrPort) { call.Say(agent.Ready, at) })
}

// idleLevel returns the machine's idle level in busy CPUs. It measures the level for d, unless that was done before;
// with d = 0 it returns 0 if that was not done yet.
func (n *netRunner) idleLevel(d time.Duration) (float64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.idle == nil {
		if d <= 0 {
			return 0, nil
		}
		level, err := n.measure(d)
		if err != nil {
			return 0, err
		}
		n.idle = &level
	}
	return *n.idle, nil
}

func runPreflight(ctx context.Context, call agent.Call, s preflight.Spec) (preflight.Report, error) {
	s.Token = call.Token
	return preflight.Run(ctx, s, netload.Version())
}

// runCompute runs a computation. The smallest program that every host has is this one.
func runCompute(ctx context.Context, _ agent.Call, c computeload.Config) (computeload.Report, error) {
	c.Program = []string{"/proc/self/exe", remote.NothingCommand}
	return computeload.Run(ctx, c)
}

// digest writes the SHA-256 of this program's file, in hexadecimal: images into which the program was copied may have
// no tool for that.
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

// parentInterval is the time between checks of the parent process.
const parentInterval = 500 * time.Millisecond

// cancelWithParent calls cancel when the process with the ID parent has ended, which gives the agent another parent. It
// polls, because the kernel's signal for that (PR_SET_PDEATHSIG) is sent when the thread that started the agent ends,
// and a Go program does not control when its threads end.
func cancelWithParent(ctx context.Context, parent int, cancel context.CancelCauseFunc) {
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
