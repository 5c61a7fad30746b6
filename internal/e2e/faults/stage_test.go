//go:build linux

package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const managed = "app.kubernetes.io/managed-by=knotmeter"

// A stage is what the tests share: a cluster, the programs, and a way to the cluster beside that of the program
// under test.
type stage struct {
	kubernetes.Interface
	kubeconfig string
	program    string // under test
	cluster    string // that made the cluster; empty if its parts can not be stopped
}

// newStage is the stage that the environment names.
func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{kubeconfig: os.Getenv("KNOTMETER_E2E_KUBECONFIG"), program: os.Getenv("KNOTMETER_E2E_PROGRAM"), cluster: os.Getenv("KNOTMETER_E2E_CLUSTER")}
	if s.kubeconfig == "" {
		t.Skip("there is no cluster: KNOTMETER_E2E_KUBECONFIG names no kubeconfig")
	}
	if s.program == "" {
		s.program = filepath.Join(t.TempDir(), "knotmeter")
		build := exec.Command("go", "build", "-o", s.program, "github.com/knotmeter/knotmeter/cmd/knotmeter")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if s.Interface, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if left := s.left(t); len(left) > 0 {
		t.Fatalf("before the test there is %v", left)
	}
	return s
}

// order has the cluster stop, start or restart one of its parts.
func (s *stage) order(t testing.TB, verb, part string) {
	t.Helper()
	if out, err := s.clusterCommand(verb, part).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v: %s", verb, part, err, out)
	}
}

func (s *stage) clusterCommand(verb string, args ...string) *exec.Cmd {
	return exec.Command(s.cluster, append([]string{verb, "-dir", filepath.Dir(s.kubeconfig)}, args...)...)
}

// needsParts skips a test of faults in the cluster itself if there is nothing that makes them.
func (s *stage) needsParts(t *testing.T) {
	t.Helper()
	if s.cluster == "" {
		t.Skip("the cluster's parts can not be stopped: KNOTMETER_E2E_CLUSTER names no program that does it")
	}
}

// left lists what there is of Knotmeter on the cluster: objects by their label, and agents.
func (s *stage) left(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	which := metav1.ListOptions{LabelSelector: managed}
	var names []string
	add := func(kind string, err error, items []metav1.ObjectMeta) {
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range items {
			names = append(names, kind+" "+strings.TrimPrefix(m.Namespace+"/"+m.Name, "/"))
		}
	}
	namespaces, err := s.CoreV1().Namespaces().List(ctx, which)
	add("namespace", err, metas(namespaces.Items, func(o corev1.Namespace) metav1.ObjectMeta { return o.ObjectMeta }))
	pods, err := s.CoreV1().Pods("").List(ctx, which)
	add("pod", err, metas(pods.Items, func(o corev1.Pod) metav1.ObjectMeta { return o.ObjectMeta }))
	services, err := s.CoreV1().Services("").List(ctx, which)
	add("service", err, metas(services.Items, func(o corev1.Service) metav1.ObjectMeta { return o.ObjectMeta }))
	maps, err := s.CoreV1().ConfigMaps("").List(ctx, which)
	add("config map", err, metas(maps.Items, func(o corev1.ConfigMap) metav1.ObjectMeta { return o.ObjectMeta }))
	secrets, err := s.CoreV1().Secrets("").List(ctx, which)
	add("secret", err, metas(secrets.Items, func(o corev1.Secret) metav1.ObjectMeta { return o.ObjectMeta }))
	claims, err := s.CoreV1().PersistentVolumeClaims("").List(ctx, which)
	add("claim", err, metas(claims.Items, func(o corev1.PersistentVolumeClaim) metav1.ObjectMeta { return o.ObjectMeta }))
	return append(names, s.agents(t)...)
}

func metas[T any](items []T, of func(T) metav1.ObjectMeta) []metav1.ObjectMeta {
	var list []metav1.ObjectMeta
	for _, o := range items {
		list = append(list, of(o))
	}
	return list
}

// agents are the agents' processes below the process that holds the cluster, with what they do.
func (s *stage) agents(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(s.kubeconfig), "pid"))
	if err != nil {
		return nil // no cluster of this machine
	}
	holder := strings.TrimSpace(string(text))
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
		// The name, in brackets, may have anything in it.
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

// underLoad says whether agents of a run are at work now, on the whole cluster or in pods with these UIDs.
func (s *stage) underLoad(t testing.TB, uids []string) bool {
	t.Helper()
	for _, a := range s.agents(t) {
		fields := strings.Fields(a)
		groups, err := os.ReadFile("/proc/" + fields[1] + "/cgroup")
		if err == nil && fields[2] == "agent" && slices.ContainsFunc(uids, func(uid string) bool {
			return bytes.Contains(groups, []byte(uid)) || bytes.Contains(groups, []byte(strings.ReplaceAll(uid, "-", "_")))
		}) {
			return true
		}
	}
	return false
}

// namespace makes a namespace, which does not bear the label of Knotmeter's own.
func (s *stage) namespace(t testing.TB, level string) string {
	t.Helper()
	name := fmt.Sprintf("given-%s", strconv.FormatInt(time.Now().UnixNano(), 36))
	s.makeNamespace(t, name, level)
	t.Cleanup(func() { _ = s.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{}) })
	return name
}

func (s *stage) makeNamespace(t testing.TB, name, level string) {
	t.Helper()
	labels := map[string]string{"pod-security.kubernetes.io/enforce": level}
	_, err := s.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
	}
}

// eventually asks until the answer is yes.
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
