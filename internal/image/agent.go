package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// AgentFile returns the file name of the agent's program for an architecture, in the directory of the command line's
// program.
func AgentFile(arch string) string { return "knotmeter-agent-linux-" + arch }

// Agent returns the agent's program for an architecture: the file next to this program, else this program itself, which
// can be an agent too, but is several times as large.
func Agent(arch string) ([]byte, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// kubectl's plugin manager starts the program by a link from another directory.
	if own, err = filepath.EvalSymlinks(own); err != nil {
		return nil, err
	}
	return findAgent(own, arch)
}

func findAgent(own, arch string) ([]byte, error) {
	beside := filepath.Join(filepath.Dir(own), AgentFile(arch))
	for _, file := range []string{beside, own} {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err = checkAgent(text, arch); err == nil {
			return text, nil
		}
		if file == beside {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil, fmt.Errorf("there is no agent for linux/%s: neither %s nor this program itself is one; "+
		"it comes from 'GOOS=linux GOARCH=%s CGO_ENABLED=0 go build -o %s ./cmd/knotmeter-agent'",
		arch, beside, arch, beside)
}

// AgentFrom reads the agent's program for an architecture from a file.
func AgentFrom(file, arch string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := checkAgent(text, arch); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// machines maps architectures to their names in program files.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkAgent returns the reason why a program cannot be the agent of an image for arch: it must be for Linux and that
// architecture, and need no shared libraries.
func checkAgent(program []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("it is no program for Linux: %w", err)
	}
	defer f.Close()
	if f.Machine != machines[arch] {
		return fmt.Errorf("it is a program for %v, not for %s", f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it needs shared libraries; build it with CGO_ENABLED=0")
		}
	}
	return nil
}
