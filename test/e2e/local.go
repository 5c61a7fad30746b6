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

// makerVariable names the program that made the cluster, and can stop its parts.
const makerVariable = "KNOTMETER_E2E_CLUSTER"

// A Local is a cluster of test/cluster on this machine, whose nodes can be looked into.
type Local struct {
	Kubeconfig   string
	Holder       int    // the number of the process that is PID 1 of the cluster's own namespaces
	Network      string // of the pods, by the name that test/cluster has for it
	IPv6, Multus bool   // what it has in addition
	Filter       bool   // kube-router enforces NetworkPolicies
}

// Here is the cluster that the environment names, if it is a local one; the test is skipped if not.
func Here(t testing.TB) Local {
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

// Holder is the number of the process that holds a cluster of test/cluster, which stands next to its kubeconfig. An
// error that Is fs.ErrNotExist says that the cluster is another one.
func Holder(kubeconfig string) (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(kubeconfig), "pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// NeedParts skips the test if the environment names no program that can stop the cluster's parts.
func NeedParts(t testing.TB) {
	t.Helper()
	if os.Getenv(makerVariable) == "" {
		t.Skip("the cluster's parts cannot be stopped: " + makerVariable + " names no program that does it")
	}
}

// Command is one of the program that made the cluster of a kubeconfig.
func Command(kubeconfig, verb string, args ...string) *exec.Cmd {
	return exec.Command(os.Getenv(makerVariable), append([]string{verb, "-dir", filepath.Dir(kubeconfig)}, args...)...)
}

// NetworkSwitch is the command by which an experiment gives the cluster of a kubeconfig another network.
func NetworkSwitch(kubeconfig, network string) string {
	return strings.Join(Command(kubeconfig, "network", network).Args, " ")
}

// Processes are those of the cluster whose command lines have some words.
func (l Local) Processes(t testing.TB, words string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), words) {
			continue // it has ended, or is another one
		}
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))); l.has(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has says whether a process descends from the cluster's first one.
func (l Local) has(pid int) bool {
	for pid > 1 && pid != l.Holder {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return false
		}
		// The fields after the name, which is in parentheses and may have anything in it: the state and the parent.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 {
			return false
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return pid == l.Holder
}
