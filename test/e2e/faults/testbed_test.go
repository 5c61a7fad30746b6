//go:build linux

package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/test/e2e"
)

// A testbed holds the cluster and the program that experiments share.
type testbed struct {
	*e2e.Cluster
	program string // under test
}

// newTestbed returns the cluster and the program that the environment names, and skips the test without a cluster.
func newTestbed(t *testing.T) *testbed {
	t.Helper()
	return &testbed{Cluster: e2e.Open(t), program: e2e.Program(t)}
}

// order stops, starts or restarts a part of the cluster.
func (s *testbed) order(t testing.TB, verb, part string) {
	t.Helper()
	if out, err := e2e.Command(s.Kubeconfig, verb, part).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v: %s", verb, part, err, out)
	}
}

// left lists what Knotmeter has on the cluster: objects, by their label, and processes of agents.
func (s *testbed) left(t testing.TB) []string {
	t.Helper()
	return append(s.Left(t), s.agents(t)...)
}

// agents lists the cluster's processes of agents: "agent PID VERB".
func (s *testbed) agents(t testing.TB) []string {
	t.Helper()
	pid, err := e2e.Holder(s.Kubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the cluster is not on this machine
	}
	if err != nil {
		t.Fatal(err)
	}
	holder := strconv.Itoa(pid)
	parents := map[string]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain any character.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[0] != "Z" {
			parents[strings.Split(file, "/")[2]] = fields[1]
		}
	}
	var found []string
	for pid := range parents {
		up := pid
		for range 50 {
			if up == holder || up == "" {
				break
			}
			up = parents[up]
		}
		line, err := os.ReadFile("/proc/" + pid + "/cmdline")
		args := strings.Split(string(line), "\x00")
		if up == holder && err == nil && strings.HasSuffix(args[0], "/knotmeter-agent") && len(args) > 1 {
			found = append(found, "agent "+pid+" "+args[1])
		}
	}
	slices.Sort(found)
	return found
}

// cpuTime returns the CPU time of the control groups of agents in pods with these UIDs. An agent lives as long as its
// site, but only uses CPU time, itself or by a tool that it started, during runs.
func (s *testbed) cpuTime(t testing.TB, uids []string) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, a := range s.agents(t) {
		fields := strings.Fields(a)
		groups, err := os.ReadFile("/proc/" + fields[1] + "/cgroup")
		if err != nil || fields[2] != "agent" {
			continue
		}
		for line := range strings.Lines(string(groups)) {
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			ours := slices.ContainsFunc(uids, func(uid string) bool {
				return strings.Contains(line, uid) || strings.Contains(line, strings.ReplaceAll(uid, "-", "_"))
			})
			if len(parts) == 3 && parts[1] == "cpuacct" && ours {
				text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup/cpuacct", parts[2], "cpuacct.usage"))
				if ns, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil {
					sum += time.Duration(ns)
				}
			}
		}
	}
	return sum
}

// namespace makes a namespace without Knotmeter's label, which is deleted at the end of the test, and returns its name.
func (s *testbed) namespace(t testing.TB, level string) string {
	t.Helper()
	name := fmt.Sprintf("given-%s", strconv.FormatInt(time.Now().UnixNano(), 36))
	s.makeNamespace(t, name, level)
	t.Cleanup(func() { _ = s.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	return name
}

func (s *testbed) makeNamespace(t testing.TB, name, level string) {
	t.Helper()
	labels := map[string]string{"pod-security.kubernetes.io/enforce": level}
	_, err := s.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
}

// eventually calls ask every 50 ms until it returns true, and fails the test after limit.
func eventually(t testing.TB, what string, limit time.Duration, ask func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if ask() {
			return true
		}
	}
	t.Errorf("not within %v: %s", limit, what)
	return false
}
