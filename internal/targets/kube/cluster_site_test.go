package kube

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/preflight"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// openSite opens a site of some paths, and checks that all of them are there.
func openSite(t *testing.T, k *kubeTarget, paths ...result.Path) targets.Site {
	t.Helper()
	var placements []targets.Placement
	for _, p := range paths {
		placements = append(placements, targets.Placement{Path: p})
	}
	began := time.Now()
	s, err := k.Open(t.Context(), placements)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d paths were opened in %.1f s", len(paths), time.Since(began).Seconds())
	for i, place := range s.Places {
		if place.Err != nil {
			t.Errorf("%s: %v", paths[i], place.Err)
		}
	}
	return s
}

// TestSiteOfAllPaths checks that one site has all nine paths with as few pods as possible, each with one agent for all
// its paths, and leaves nothing.
func TestSiteOfAllPaths(t *testing.T) {
	c := admin(t)
	k := newTestTarget(t, realCluster(t))
	s := openSite(t, k, result.Paths()...)
	const pods, services = 14, 4 // seven pairs: a Service has the pods of the direct path, if its client is in a pod
	which := metav1.ListOptions{LabelSelector: manifest.LabelExperiment + "=" + k.experiment}
	namespace := k.claimed.namespace
	if found, err := c.CoreV1().Pods(namespace).List(t.Context(), which); err != nil || len(found.Items) != pods {
		t.Errorf("%d pods, %v", len(found.Items), err)
	}
	if found, err := c.CoreV1().Services(namespace).List(t.Context(), which); err != nil ||
		len(found.Items) != services {
		t.Errorf("%d Services, %v", len(found.Items), err)
	}
	for i, place := range s.Places {
		if place.Err != nil {
			continue
		}
		if err := checkConnection(t, place.Pair); err != nil {
			t.Errorf("%s: %v", result.Paths()[i], err)
		}
		if ill := place.Health(t.Context()); len(ill) > 0 {
			t.Errorf("%s: %q", result.Paths()[i], ill)
		}
	}
	for i, place := range s.Places {
		for _, h := range []host.Host{place.Client, place.Server} {
			if n := agentsOn(t, h); n != 1 {
				t.Errorf("%s: %d agents on %s", result.Paths()[i], n, h.Name())
			}
		}
	}
	began := time.Now()
	closeAndCheck(t, c, k, targets.Single{Close: s.Close})
	t.Logf("closed in %.1f s", time.Since(began).Seconds())
	spent := s.Spent()
	if len(spent) != 2 || spent[0].Metric != metric.Pods || spent[0].Number != pods ||
		spent[1].Metric != metric.APICalls || spent[1].Number < pods {
		t.Errorf("spent %v", spent)
	}
}

// checkConnection makes the agents of a place connect once more.
func checkConnection(t *testing.T, pair host.Pair) error {
	t.Helper()
	token := preflight.NewToken()
	ask := func(h host.Host, s preflight.Spec) error {
		s.Token, s.Timeout = token, 10*time.Second
		r, err := agent.Do[preflight.Report](t.Context(), h,
			agent.Request{Verb: preflight.Verb, Token: token, Body: s}, nil)
		if err == nil && r.Error != "" {
			err = errors.New(r.Error)
		}
		return err
	}
	served := make(chan error, 1)
	go func() { served <- ask(pair.Server, preflight.Spec{Role: preflight.Server, Address: pair.Listen}) }()
	err := ask(pair.Client, preflight.Spec{Role: preflight.Client, Address: pair.Dial})
	return errors.Join(err, <-served)
}

// supervisorPattern matches the supervisor of an agent, with its thread group ID, which is the same for all its
// threads.
var supervisorPattern = regexp.MustCompile(`exec\x00/knotmeter-agent\x00agent\x00Name:(?s:.*?)Tgid:\t(\d+)`)

// agentsOn counts the agents in a pod by their supervisors.
func agentsOn(t *testing.T, h host.Host) int {
	t.Helper()
	args := []string{"cat"}
	for pid := range 300 {
		args = append(args, fmt.Sprintf("/proc/%d/cmdline", pid+1), fmt.Sprintf("/proc/%d/status", pid+1))
	}
	var out bytes.Buffer
	_ = h.Run(t.Context(), host.Cmd{Args: args, Stdout: &out}) // most of these processes are not there
	processes := map[string]bool{}
	for _, found := range supervisorPattern.FindAllStringSubmatch(out.String(), -1) {
		processes[found[1]] = true
	}
	return len(processes)
}

// TestAgentReplaced checks that an agent whose connection was cut is replaced once that is known, whichever path needs
// it next.
func TestAgentReplaced(t *testing.T) {
	c := admin(t)
	text, proxy := targetThroughProxy(t)
	k := newTestTarget(t, text)
	s := openSite(t, k, result.PodPodOther, result.PodSvcOther)
	proxy.Cut()
	for began := time.Now(); agentsOn(t, s.Places[0].Client)+agentsOn(t, s.Places[0].Server) > 0; {
		if time.Since(began) > time.Minute {
			t.Fatal("agents outlive their connections")
		}
	}
	err := checkConnection(t, s.Places[1].Pair)
	if err != nil && !errors.Is(err, remote.ErrLost) {
		t.Error(err)
	}
	if err != nil {
		err = checkConnection(t, s.Places[0].Pair)
	}
	if err != nil {
		t.Error(err)
	}
	closeAndCheck(t, c, k, targets.Single{Close: s.Close})
}

// TestSiteInPart checks that a path that does not work affects no other path between the same pods, and no other group.
func TestSiteInPart(t *testing.T) {
	c := admin(t)
	given := namespaceFor(t, c, "restricted")
	_, err := c.CoreV1().ResourceQuotas(given).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"services": resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	probe := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for began := time.Now(); !apierrors.IsForbidden(err); { // a new quota holds nothing back at first
		if time.Since(began) > time.Minute {
			t.Fatalf("the quota holds nothing back: %v", err)
		}
		_, err = c.CoreV1().Services(given).Create(t.Context(), probe, dry)
	}
	k := newTestTarget(t, realCluster(t)+"&namespace="+given)
	s, err := k.Open(t.Context(), []targets.Placement{{Path: result.PodSvcOther}, {Path: result.NodeNode},
		{Path: result.PodPodOther}, {Path: result.NodeSvcOther}})
	if err != nil {
		t.Fatal(err)
	}
	for i, words := range []string{"quota of the namespace", "refuses", "", "quota of the namespace"} {
		if err := s.Places[i].Err; (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("place %d: %v does not say %q", i+1, err, words)
		}
	}
	if err := checkConnection(t, s.Places[2].Pair); err != nil {
		t.Error(err)
	}
	closeAndCheck(t, c, k, targets.Single{Close: s.Close})
}
