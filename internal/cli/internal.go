package cli

import (
	"github.com/spf13/cobra"

	agentprogram "github.com/knotmeter/knotmeter/internal/agent/program"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/mesh"
	"github.com/knotmeter/knotmeter/internal/lab/wireguard"
	"github.com/knotmeter/knotmeter/internal/registry"
)

// newHidden returns the hidden commands: those that this program, a node or a container's runtime starts.
func newHidden(s Streams) []*cobra.Command {
	return []*cobra.Command{
		// agentprogram.Run says what each of these does and who starts it.
		agentCommand(s, remote.AgentCommand),
		agentCommand(s, remote.ExecCommand),
		agentCommand(s, remote.WaitCommand),
		agentCommand(s, remote.DigestCommand),
		agentCommand(s, remote.RespondCommand),
		agentCommand(s, remote.NothingCommand),
		agentCommand(s, remote.EnterCommand),
		{ // keeps the namespaces of a lab; started by labs
			Use: registry.HolderCommand, Hidden: true, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return lab.Hold(datapath.Kit) },
		},
		{ // serves a WireGuard device in user space; started by labs
			Use: wireguard.Command, Hidden: true, Args: cobra.ExactArgs(2),
			RunE: func(_ *cobra.Command, args []string) error { return wireguard.Serve(args, s.In, s.Out) },
		},
		{ // carries the connections of a node's pods to other nodes; started by labs
			Use: mesh.Command, Hidden: true, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return mesh.Serve(s.In, s.Out) },
		},
	}
}

// agentCommand returns a hidden command of the agent's program, all of which this program contains.
func agentCommand(s Streams, name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true, // flags may be of the command that exec starts
		RunE: func(c *cobra.Command, args []string) error {
			return agentprogram.Run(c.Context(), append([]string{name}, args...), s.In, s.Out, s.Err)
		},
	}
}
