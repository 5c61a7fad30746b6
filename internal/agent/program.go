package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	netload "github.com/knotmeter/knotmeter/internal/load/net"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// Program is the agent's program, which is all that runs in a pod: args say what it does. Without any it is
// one side of a run. Errors of a run are in its events already; [ErrReported] is what they are.
func Program(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		args = []string{remote.AgentCommand}
	}
	switch args[0] {
	case remote.AgentCommand:
		if err := Main(ctx, stdin, stdout, stderr); err != nil {
			return fmt.Errorf("%w: %w", ErrReported, err)
		}
		return nil
	case remote.ExecCommand:
		return remote.Serve(ctx, remote.Streams{Stdin: stdin, Stdout: stdout, Stderr: stderr}, args[1:])
	case remote.WaitCommand:
		return remote.Wait(ctx)
	case remote.DigestCommand:
		return digest(stdout)
	case preflight.Command:
		return preflight.Main(ctx, stdin, stdout, netload.Version())
	case vault.Command:
		return vault.Main(ctx, stdin, stdout)
	}
	return fmt.Errorf("the agent has no command %q; people have no use for it, and 'knotmeter run' starts it", args[0])
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

// ErrReported is an error that the agent's last event tells.
var ErrReported = errors.New("the run failed")
