//go:build linux

package labtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/knotmeter/knotmeter/internal/cgroup"
	"github.com/knotmeter/knotmeter/internal/result"
)

// clusterUplink is the prefix of the interfaces of test/cluster, which may start or stop during the tests.
const clusterUplink = "knotmeter-c"

// Interfaces returns the index and name ("2 eth0") of each interface in the calling thread's network namespace, without
// the interfaces of test clusters.
func Interfaces() ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range all {
		if !strings.HasPrefix(i.Name, clusterUplink) {
			names = append(names, fmt.Sprintf("%d %s", i.Index, i.Name))
		}
	}
	return names, nil
}

// A Process is a process that a test has started, directly or indirectly.
type Process struct {
	PID           int
	Network, Args string // its network namespace and its arguments; empty: unknown
}

func (p Process) String() string { return fmt.Sprintf("process %d %s %s", p.PID, p.Network, p.Args) }

// Marked returns the processes with a mark (NAME=VALUE) in their environment. Everything else that a lab makes ends
// with its processes.
func Marked(t testing.TB, mark string) []Process {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []Process
	for _, file := range environs {
		// A process that has ended meanwhile has no environment.
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(mark+"\x00")) {
			continue
		}
		dir := filepath.Dir(file)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			t.Fatal(err)
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		network, _ := os.Readlink(filepath.Join(dir, "ns/net"))
		found = append(found, Process{pid, network, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))})
	}
	return found
}

// A Group is a control group of a test. Labs make their groups below their own one, so the leftovers of a program in
// the group can be distinguished from those of other tests. If control groups cannot be made, labs make none either.
type Group struct{ group *cgroup.Group }

// NewGroup returns a control group that is removed at the end of the test.
func NewGroup(t testing.TB) Group {
	t.Helper()
	g, err := cgroup.New()
	if errors.Is(err, result.ErrNotSupported) {
		return Group{}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return Group{g}
}

// Place changes cmd so that the program starts in the group.
func (g Group) Place(cmd *exec.Cmd) {
	if g.group == nil {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	g.group.Place(cmd.SysProcAttr)
}

// Left returns the control groups that the program has made and not removed.
func (g Group) Left(t testing.TB) []string {
	t.Helper()
	if g.group == nil {
		return nil
	}
	left, err := filepath.Glob(filepath.Join(g.group.Dir(), cgroup.Prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}
