//go:build linux

package labtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// clusterUplink is how the interfaces of test/cluster begin, which somebody may start or stop beside the tests.
const clusterUplink = "knotmeter-c"

// Interfaces are the interfaces of the calling thread's network namespace, but for those of test clusters: "2 eth0".
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

// A Process is one that a test has started, itself or by others.
type Process struct {
	PID           int
	Network, Args string // its network namespace and its arguments, as far as they can be known
}

func (p Process) String() string { return fmt.Sprintf("process %d %s %s", p.PID, p.Network, p.Args) }

// Marked are the processes with a mark in their environment (NAME=VALUE). What else a lab makes ends with them.
func Marked(t testing.TB, mark string) []Process {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []Process
	for _, file := range environs {
		// A process that has ended meanwhile has no environment any more.
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
