//go:build linux

// Package faults tests whole experiments on a real cluster under faults: a node or the API server goes down, pods are
// evicted, connections are cut, a disk is full, rights are revoked, the program is killed. Earlier results must stay
// readable, the program must report what happened, the experiment must continue or be resumable, and nothing may be
// left on the cluster. TestSoak injects faults at random moments for the duration in KNOTMETER_SOAK.
package faults

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/test/e2e"
)

// A fault happens during an experiment.
type fault struct {
	name     string
	alone    bool     // it affects the whole cluster, so no other experiment may run
	given    bool     // the experiment is in an existing namespace
	options  string   // additional options of the target
	cases    []string // flags; nil: pod-pod/same/tcp-rr
	prepare  func(*experiment)
	inject   func(*experiment, *running) // injects the fault, and ends it if the experiment must continue by itself
	repair   func(*experiment)           // ends the fault before the experiment is resumed
	status   int                         // of the program; 0: the experiment completes by itself
	messages []string                    // in the program's output
	reason   string                      // in an invalid run; empty if there need be none
	cleans   bool                        // the program names leftovers, with the command that removes them
	soak     bool                        // too slow for TestFaults
	once     bool                        // too slow to be repeated in TestSoak
}

// blocks is the number of blocks of an experiment: one before the fault, one during it, and one after it.
const blocks = 3

// faults returns all faults.
func faults() []fault {
	return slices.Concat(podFaults(), namespaceFaults(), localFaults(), clusterFaults())
}

// podFaults returns faults of a run's pods and connections.
func podFaults() []fault {
	return []fault{
		{name: "pod evicted", given: true, reason: "evicted", inject: func(s *experiment, _ *running) {
			p := s.pod("server")
			s.expectHit(s.CoreV1().Pods(p.Namespace).EvictV1(context.Background(),
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}))
		}},
		{name: "pod deleted", given: true, reason: "removed", inject: func(s *experiment, _ *running) {
			p := s.pod("client")
			s.expectHit(s.CoreV1().Pods(p.Namespace).Delete(context.Background(), p.Name,
				metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		}},
		{name: "connection cut", given: true, reason: "connection", prepare: func(s *experiment) {
			s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
			p := e2e.StartProxy(s, s.testbed.Kubeconfig, s.kubeconfig)
			s.undo = append(s.undo, p.Close)
			s.cut = func() { p.Cut() }
		}, inject: func(s *experiment, _ *running) { s.cut() }},
	}
}

// namespaceFaults returns faults of an experiment's namespace and its rights there.
func namespaceFaults() []fault {
	remove := func(s *experiment, _ *running) {
		s.expectHit(s.CoreV1().Namespaces().Delete(context.Background(), s.where(), metav1.DeleteOptions{}))
	}
	return []fault{
		{name: "own namespace deleted", inject: remove},
		{name: "given namespace deleted", given: true, status: 2, messages: []string{"namespace",
			"resume with: knotmeter run --resume"},
			inject: remove, repair: func(s *experiment) {
				eventually(s, "the end of the namespace", time.Minute, func() bool {
					_, err := s.CoreV1().Namespaces().Get(context.Background(), s.namespace, metav1.GetOptions{})
					return apierrors.IsNotFound(err)
				})
				s.makeNamespace(s, s.namespace, s.level)
			}},
		{name: "permission taken away", given: true, options: "as=sailor&client-node=node-1&server-node=node-2", status: 2,
			cleans:   true,
			messages: []string{"the user sailor may not", "rbac", "resume with: knotmeter run --resume"},
			prepare:  func(s *experiment) { s.applyRole(); s.bindRole() },
			inject: func(s *experiment, _ *running) {
				s.expect(s.RbacV1().RoleBindings(s.namespace).Delete(context.Background(), "sailor", metav1.DeleteOptions{}))
			},
			repair: func(s *experiment) { s.bindRole() }},
	}
}

// localFaults returns faults of the machine that the program runs on, and an interrupt by the user.
func localFaults() []fault {
	ballast := func(s *experiment) string { return filepath.Join(s.dir, "disk", "ballast") }
	return []fault{
		{name: "disk full", given: true, status: 2, messages: []string{"no space left on device", "the results so far are in",
			"resume with: knotmeter run --resume"},
			prepare: func(s *experiment) { s.mountSmallDisk() },
			inject: func(s *experiment, _ *running) {
				if err := os.WriteFile(ballast(s), bytes.Repeat([]byte{1}, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
					s.Errorf("the disk is not full: %v", err)
				}
			},
			repair: func(s *experiment) { s.expect(os.Remove(ballast(s))) }},
		{name: "interrupted", given: true, status: 130, messages: []string{"interrupted; resume with: knotmeter run --resume",
			"report.html"},
			inject: func(s *experiment, r *running) { s.expect(r.Process.Signal(os.Interrupt)) }},
	}
}

// clusterFaults returns faults of the cluster's parts.
func clusterFaults() []fault {
	outage := func(part string, d time.Duration) func(*experiment, *running) {
		return func(s *experiment, _ *running) {
			s.order(s, "stop", part)
			time.Sleep(d)
			s.order(s, "start", part)
		}
	}
	// On a busy machine a part takes a while to stop: the windows are long enough for that.
	other := []string{"--case", "pod-pod/other/tcp-rr", "--duration", "3s"}
	same := []string{"--case", "pod-pod/same/tcp-rr", "--duration", "3s"}
	return []fault{
		{name: "node stopped", alone: true, cases: other, reason: "connection", inject: outage("node-2", time.Second)},
		{name: "API server restarted", alone: true, cases: same, reason: "connection", inject: outage("kube-apiserver", 0)},
		{name: "API server lost", alone: true, status: 130, cleans: true, messages: []string{"cannot be reached",
			"resume with: knotmeter run --resume"},
			inject: func(s *experiment, r *running) {
				s.order(s, "stop", "kube-apiserver")
				s.expect(r.Process.Signal(os.Interrupt))
				<-r.exited
				s.order(s, "start", "kube-apiserver")
				s.awaitAPI()
			}},
		{name: "API server away for long", alone: true, soak: true, inject: outage("kube-apiserver", 75*time.Second)},
		{name: "node away for long", alone: true, soak: true, cases: other, inject: outage("node-2", 70*time.Second)},
		{name: "link of a node down", alone: true, soak: true, cases: other, inject: outage("node-2-link", 20*time.Second)},
		{name: "node lost", alone: true, soak: true, once: true, cases: other, status: 2, cleans: true,
			messages: []string{"node-2 is not ready", "resume with: knotmeter run --resume"},
			inject: func(s *experiment, r *running) {
				s.order(s, "stop", "node-2")
				<-r.exited
				s.order(s, "start", "node-2")
			}},
	}
}

// expect fails the test if there is an error.
func (s *experiment) expect(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

// expectHit fails the test if the injection of a fault failed. At a random moment its object may not exist.
func (s *experiment) expectHit(err error) {
	s.Helper()
	if !s.random || !apierrors.IsNotFound(err) {
		s.expect(err)
	}
}

// pod returns the pod of one end of the run; without a run, the name of a pod that does not exist.
func (s *experiment) pod(role string) corev1.Pod {
	s.Helper()
	pods, err := s.CoreV1().Pods(s.where()).List(context.Background(),
		metav1.ListOptions{LabelSelector: "knotmeter.dev/role=" + role})
	s.expect(err)
	if err != nil || len(pods.Items) == 0 {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "there-is-none", Namespace: s.where()}}
	}
	return pods.Items[0]
}

// awaitAPI waits at most a minute until the API server answers.
func (s *experiment) awaitAPI() {
	s.Helper()
	eventually(s, "the API server", time.Minute, func() bool {
		_, err := s.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
		return err == nil
	})
}

// applyRole creates the Role that doctor prints as sufficient.
func (s *experiment) applyRole() {
	s.Helper()
	r := s.start("doctor", "--target", s.target(), "--rbac")
	if status := s.end(r); status != 0 {
		s.Fatalf("status %d: %s", status, r)
	}
	for _, text := range strings.Split(r.String(), "---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(text), &role); err != nil || role.Kind != "Role" {
			continue // the ClusterRole of the facts is optional
		}
		_, err := s.RbacV1().Roles(s.namespace).Create(context.Background(), &role, metav1.CreateOptions{})
		s.expect(err)
		return
	}
	s.Fatalf("there is no Role in\n%s", r)
}

// bindRole binds that Role to the user sailor, and waits until the API server applies it.
func (s *experiment) bindRole() {
	s.Helper()
	_, err := s.RbacV1().RoleBindings(s.namespace).Create(context.Background(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "sailor"}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "knotmeter"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "sailor"}},
	}, metav1.CreateOptions{})
	s.expect(err)
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "sailor", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: "list",
			Resource: "pods"},
	}}
	eventually(s, "the rights of sailor", time.Minute, func() bool {
		answer, err := s.AuthorizationV1().SubjectAccessReviews().Create(context.Background(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	})
}

// mountSmallDisk mounts a file system of 4 MiB for the results.
func (s *experiment) mountSmallDisk() {
	s.Helper()
	dir := filepath.Join(s.dir, "disk")
	s.expect(os.MkdirAll(dir, 0o755))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		s.Skipf("a disk of a limited size takes root: %v", err)
	}
	s.undo = append(s.undo, func() { s.expect(syscall.Unmount(dir, syscall.MNT_DETACH)) })
}

// cleanCommand matches the command that the program prints for the removal of leftovers.
func cleanCommand() *regexp.Regexp {
	return regexp.MustCompile(`remove it with: knotmeter (clean) '([^']*)'`)
}

// test injects the fault during the experiment's second run, and checks the outcome.
func (f fault) test(s *experiment) {
	s.Helper()
	f.setUp(s)
	defer s.tearDown()
	r := s.measure(f.caseFlags()...)
	s.awaitRun(r, 1)
	before := s.runs()
	f.inject(s, r)
	status := s.end(r)
	if status != f.status {
		s.Errorf("status %d, not %d:\n%s", status, f.status, r)
	}
	for _, words := range f.messages {
		if !strings.Contains(r.String(), words) {
			s.Errorf("it does not say %q:\n%s", words, r)
		}
	}
	now := s.runs()
	if gone := lost(before, now); len(gone) > 0 || len(before) == 0 {
		s.Errorf("of %d runs these are lost: %v", len(before), gone)
	}
	s.checkReadable()
	hasReason := func(text string) bool { return strings.Contains(text, f.reason) }
	if f.reason != "" && !slices.ContainsFunc(invalidReasons(now), hasReason) {
		s.Errorf("no run is invalid for %q, but for %q", f.reason, invalidReasons(now))
	}
	s.Logf("invalid: %q", invalidReasons(now))
	if f.status == 0 {
		s.checkComplete(before, blocks)
		s.nothingLeft()
		return
	}
	if f.repair != nil {
		f.repair(s)
	}
	if f.cleans {
		s.clean(r)
	}
	s.nothingLeft()
	s.resume(blocks)
	s.nothingLeft()
}

// setUp prepares the experiment of a fault.
func (f fault) setUp(s *experiment) {
	s.Helper()
	s.alone, s.options = f.alone, f.options
	if f.given {
		s.namespace = s.testbed.namespace(s, s.level)
	}
	if f.prepare != nil {
		f.prepare(s)
	}
}

func (f fault) caseFlags() []string {
	cases := f.cases
	if cases == nil {
		cases = []string{"--case", "pod-pod/same/tcp-rr"}
	}
	return append(cases, "--blocks", strconv.Itoa(blocks))
}

// tearDown calls the functions of undo, the last first.
func (s *experiment) tearDown() {
	for _, undo := range slices.Backward(s.undo) {
		undo()
	}
}

// clean runs the command that the program printed for leftovers. If the program could not delete its Lease, which clean
// respects for two minutes, clean is forced with --all.
func (s *experiment) clean(r *running) {
	s.Helper()
	m := cleanCommand().FindStringSubmatch(r.String())
	if m == nil {
		s.Errorf("it names no command that removes what may be left:\n%s", r)
		return
	}
	command := append(strings.Fields(m[1]), m[2])
	if strings.Contains(r.String(), "clean leaves it alone for 2m0s") {
		command = append(command, "--all", "--yes")
	}
	c := s.start(command...)
	if status := s.end(c); status != 0 {
		s.Errorf("clean ended with status %d: %s", status, c)
	}
	s.Logf("%s\n%s", m[0], c)
}

func invalidReasons(runs []result.Run) []string {
	var list []string
	for _, r := range runs {
		list = append(list, result.Texts(r.Invalid)...)
	}
	return list
}

// TestFaults checks that under each fault the results are kept, nothing is left on the cluster, and the experiment
// continues or can be resumed.
func TestFaults(t *testing.T) {
	testbed := newTestbed(t)
	t.Run("together", func(t *testing.T) {
		for i, f := range faults() {
			if f.alone {
				continue
			}
			t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				s := newExperiment(t, testbed)
				s.port = 5300 + i // experiments on one node need different ports
				f.test(s)
			})
		}
	})
	if left := testbed.left(t); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	for _, f := range faults() {
		if f.alone && !f.soak {
			t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
				e2e.NeedParts(t)
				f.test(newExperiment(t, testbed))
			})
		}
	}
}
