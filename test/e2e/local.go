package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// makerVariable is the environment variable with the program of test/cluster, which started the cluster.
const makerVariable = "KNOTMETER_E2E_CLUSTER"

// A Local is a cluster of test/cluster on this machine, whose nodes tests can inspect.
type Local struct {
	Kubeconfig   string
	Holder       int    // host PID of the process that is PID 1 of the cluster's namespaces
	Network      string // of the pods, by its name in test/cluster
	IPv6, Multus bool   // whether the cluster has them
	Filter       bool   // whether kube-router enforces NetworkPolicies
}

// OpenLocal returns the cluster that the environment names, and skips the test if it is not a cluster of test/cluster.
func OpenLocal(t testing.TB) Local {
	t.Helper()
	l := Local{Kubeconfig: Kubeconfig(t)}
	var err error
	if l.Holder, err = Holder(l.Kubeconfig); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the cluster is not one of test/cluster, whose nodes can be looked into: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(l.Kubeconfig), "spec.json"))
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Holder returns the host PID of the process that is PID 1 of a cluster of test/cluster, from the file pid next to its
// kubeconfig. Its error wraps fs.ErrNotExist if the cluster is not one of test/cluster.
func Holder(kubeconfig string) (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// NeedParts skips the test unless the environment names a program that can stop the cluster's parts.
func NeedParts(t testing.TB) {
	t.Helper()
	if os.Getenv(makerVariable) == "" {
		t.Skip("the cluster's parts cannot be stopped: " + makerVariable + " names no program that does it")
	}
}

// Command returns a command of test/cluster for the cluster of a kubeconfig.
func Command(kubeconfig, verb string, args ...string) *exec.Cmd {
	return exec.Command(os.Getenv(makerVariable), append([]string{verb, "-dir", filepath.Dir(kubeconfig)}, args...)...)
}

// NetworkSwitch returns the command by which an experiment changes the network of a kubeconfig's cluster.
func NetworkSwitch(kubeconfig, network string) string {
	return strings.Join(Command(kubeconfig, "network", network).Args, " ")
}

// Processes returns the PIDs of the cluster's processes whose command lines contain words.
func (l Local) Processes(t testing.TB, words string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), words) {
			continue // it has ended, or does not match
		}
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))); l.has(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has reports whether a process is the holder of the cluster or a descendant of it.
func (l Local) has(pid int) bool {
	for pid > 1 && pid != l.Holder {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return false
		}
		// The state and the parent follow the name, which is in parentheses and may contain any character.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 {
			return false
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return pid == l.Holder
}
