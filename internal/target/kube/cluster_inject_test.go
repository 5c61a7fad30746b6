package kube

import (
	"os"
	"os/exec"
	"path/filepath"
)

// builtAgent is the agent's program of this source.
func builtAgent(arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "knotmeter-agent")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "agent")
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "github.com/knotmeter/knotmeter/cmd/knotmeter-agent")
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, &buildError{string(out), err}
	}
	return os.ReadFile(file)
}

// A buildError is that of a compiler, with what it says.
type buildError struct {
	says string
	err  error
}

func (e *buildError) Error() string { return e.err.Error() + ": " + e.says }
func (e *buildError) Unwrap() error { return e.err }
