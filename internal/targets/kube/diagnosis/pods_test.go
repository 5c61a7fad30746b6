package diagnosis

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

func waitingPod(reason, message string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: types.UID("u-p")},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: manifest.ContainerName,
			Image: "img:1"}}}}
	p.Status.Phase = corev1.PodPending
	if reason != "" {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ContainerName,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
	return p
}

func unscheduled(reason, message string) *corev1.Pod {
	p := waitingPod("", "")
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason,
		Message: message}}
	return p
}

func failedPod(reason, message string) *corev1.Pod {
	p := waitingPod("", "")
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, reason, message
	return p
}

func TestDiagnose(t *testing.T) {
	deleted := waitingPod("", "")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	crashed := failedPod("", "")
	crashed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ContainerName,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127, Reason: "Error"}}}}
	noShell := failedPod("", "")
	noShell.Spec.Containers[0].Stdin = true
	noShell.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ContainerName,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError",
			Message: `exec: "sh": executable file not found in $PATH`}}}}
	foreign := failedPod("", "")
	foreign.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.ContainerName,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "StartError",
			Message: "exec /knotmeter-agent: exec format error"}}}}
	for _, test := range []struct {
		name  string
		pod   *corev1.Pod
		final bool
		says  []string // nothing: it makes progress
	}{
		{"new", waitingPod("", ""), false, nil},
		{"creating", waitingPod("ContainerCreating", ""), false, nil},
		{"never pulled", waitingPod("ErrImageNeverPull", "is not present"), true,
			[]string{"node node-1 cannot get the image img:1", "knotmeter image build"}},
		{"back-off", waitingPod("ImagePullBackOff", "Back-off"), true, []string{"ImagePullBackOff", "image push"}},
		{"first pull", waitingPod("ErrImagePull", "timeout"), false, []string{"timeout", "image="}},
		{"no agent", waitingPod("RunContainerError", "no such file"), false,
			[]string{"does not start on node node-1", "/knotmeter-agent"}},
		{"config", waitingPod("CreateContainerConfigError", "secret missing"), false,
			[]string{"pod p waits on node node-1", "secret missing"}},
		{"no room", unscheduled("Unschedulable", "0/2 nodes are available: 1 Insufficient cpu."), false,
			[]string{"cannot be scheduled", "make room", "config="}},
		{"no disk", unscheduled("Unschedulable", "0/2 nodes are available: 1 Insufficient ephemeral-storage."), false,
			[]string{"make room on the node's disk", "size="}},
		{"taint", unscheduled("Unschedulable", "0/2 nodes: 1 node(s) had untolerated taint {a: b}"), false,
			[]string{"tolerate the taint"}},
		{"port", unscheduled("Unschedulable", "node(s) didn't have free ports"), false, []string{"port="}},
		{"affinity", unscheduled("Unschedulable", "didn't match affinity"), false, []string{"client-node="}},
		{"gated", unscheduled("SchedulingGated", ""), true, []string{"scheduling gate"}},
		{"evicted", failedPod("Evicted", "low on memory"), true, []string{"Evicted low on memory", "short of something"}},
		{"full", failedPod("OutOfcpu", "Node didn't have enough"), true, []string{"ask for less"}},
		{"node ports", failedPod("NodePorts", "port taken"), true, []string{"port="}},
		{"crashed", crashed, true, []string{"the agent ended with status 127"}},
		{"no shell", noShell, true, []string{"does not start on node node-1", "img:1 has no sh",
			"inject=yes needs a shell (sh), and cat and chmod, or tar"}},
		{"another architecture", foreign, true, []string{"another architecture", "--arch amd64,arm64"}},
		{"deleted", deleted, true, []string{"removed by something else"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := diagnose(test.pod)
			if got == nil || len(test.says) == 0 {
				if (got == nil) != (len(test.says) == 0) {
					t.Errorf("%v", got)
				}
				return
			}
			for _, words := range test.says {
				if !strings.Contains(got.Error(), words) {
					t.Errorf("%q does not say %q", got, words)
				}
			}
			if got.final != test.final {
				t.Errorf("final: %v", got.final)
			}
		})
	}
}

// TestEvents checks that problems in events have remedies, and that a missing pull secret is reported as the cause of
// an image that cannot be pulled.
func TestEvents(t *testing.T) {
	event := func(reason, message string) corev1.Event {
		return corev1.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message,
			InvolvedObject: corev1.ObjectReference{UID: "u-p"}}
	}
	for message, says := range map[string]string{
		"cannot find a network-attachment-definition (fast) in namespace (x)": "NetworkAttachmentDefinition, or name " +
			"another with network=",
		`no runtime for "kata" is configured`: "another runtime-class=",
		"plugin type=\"flannel\" failed":      "network plugin or container runtime",
	} {
		got := fromEvents(waitingPod("", ""), []corev1.Event{event("FailedCreatePodSandBox", message)})
		if got == nil || !strings.Contains(got.remedy, says) || !strings.Contains(got.cause, message) {
			t.Errorf("%q: %v", message, got)
		}
	}
	if got := fromEvents(waitingPod("", ""), []corev1.Event{event("FailedMount", "no space")}); got == nil ||
		!strings.Contains(got.remedy, "volumes") {
		t.Errorf("%v", got)
	}
	private := waitingPod("ImagePullBackOff", "401 Unauthorized")
	private.Namespace = "bench"
	p := &Readiness{want: 2, Pods: map[string]*corev1.Pod{"p": private}, problemSince: map[string]time.Time{},
		events: func() ([]corev1.Event, error) {
			return []corev1.Event{event("FailedToRetrieveImagePullSecret", "Unable to retrieve some "+
				"image pull secrets (key)")}, nil
		}}
	if _, err := p.AllRunning(time.Unix(1000, 0)); err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("without secrets: %v", err)
	}
	private.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "key"}}
	if _, err := p.AllRunning(time.Unix(1000, 0)); err == nil || !strings.Contains(err.Error(), "namespace bench lacks "+
		"an image pull secret") || !strings.Contains(err.Error(), "(key)") || !strings.Contains(err.Error(), "namespace=") {
		t.Errorf("with secrets: %v", err)
	}
	busy := waitingPod("ContainerCreating", "") // its node has sent events, but no status yet
	busy.Spec.ImagePullSecrets, busy.Namespace = private.Spec.ImagePullSecrets, "bench"
	p.Pods, p.warnedSince = map[string]*corev1.Pod{"p": busy}, map[string]time.Time{}
	if _, err := p.AllRunning(time.Unix(1000, 0)); err != nil {
		t.Errorf("a secret that is missing while the image comes: %v", err)
	}
	earlier := p.events
	p.events = func() ([]corev1.Event, error) {
		events, err := earlier()
		return append(events, event("Failed", "Error: ImagePullBackOff")), err
	}
	if _, err := p.AllRunning(time.Unix(2000, 0)); err == nil ||
		!strings.Contains(err.Error(), "lacks an image pull secret") {
		t.Errorf("by events alone: %v", err)
	}
	busy.Spec.ImagePullSecrets = nil
	if _, err := p.AllRunning(time.Unix(3000, 0)); err == nil || !strings.Contains(err.Error(), "cannot get the image") {
		t.Errorf("by events alone, without secrets: %v", err)
	}
}

// TestReadiness checks that a temporary problem is tolerated only for its grace time.
func TestReadiness(t *testing.T) {
	began := time.Unix(1000, 0)
	asked := 0
	p := &Readiness{want: 2, Pods: map[string]*corev1.Pod{"p": waitingPod("ErrImagePull", "timeout")},
		problemSince: map[string]time.Time{}, warnedSince: map[string]time.Time{}, eventsRead: began,
		events: func() ([]corev1.Event, error) {
			asked++
			return []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox", Message: "no network",
				InvolvedObject: corev1.ObjectReference{UID: "u-p"}}}, nil
		}}
	if done, err := p.AllRunning(began); done || err != nil {
		t.Errorf("at first: %v, %v", done, err)
	}
	if _, err := p.AllRunning(began.Add(problemGrace)); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("after %v: %v", problemGrace, err)
	}
	p.Pods["p"] = waitingPod("ContainerCreating", "")
	if _, err := p.AllRunning(began.Add(problemGrace)); err != nil || asked != 0 {
		t.Errorf("progress: %v, asked %d times", err, asked)
	}
	if _, err := p.AllRunning(began.Add(quietTime)); err != nil || asked != 1 {
		t.Errorf("silence: %v, asked %d times", err, asked)
	}
	late := began.Add(quietTime + eventGrace)
	if _, err := p.AllRunning(late); err == nil || !strings.Contains(err.Error(), "no network") || asked != 2 {
		t.Errorf("after %v: %v, asked %d times", eventGrace, err, asked)
	}
	running := waitingPod("", "")
	running.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		ContainerStatuses: []corev1.ContainerStatus{{Name: manifest.ContainerName,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	p.Pods = map[string]*corev1.Pod{"p": running, "q": running}
	if done, err := p.AllRunning(began); !done || err != nil {
		t.Errorf("running: %v, %v", done, err)
	}
}

// TestState checks that State reports how far pods without a known problem are.
func TestState(t *testing.T) {
	unplaced := waitingPod("", "")
	unplaced.Spec.NodeName = ""
	creating := func(sandbox corev1.ConditionStatus) *corev1.Pod {
		p := waitingPod("ContainerCreating", "")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: sandbox}}
		return p
	}
	for want, pod := range map[string]*corev1.Pod{
		"p: Pending, not yet scheduled; look at the scheduler":             unplaced,
		"p: Pending, not yet reported by node node-1; look at its kubelet": waitingPod("", ""),
		"p: Pending, ContainerCreating on node node-1":                     waitingPod("ContainerCreating", ""),
		"p: Pending, ContainerCreating: node node-1 has not made the pod's sandbox, network and volumes": creating(
			corev1.ConditionFalse),
		"p: Pending, ContainerCreating: node node-1 pulls or starts the image img:1": creating(corev1.ConditionTrue),
	} {
		r := &Readiness{want: 1, Pods: map[string]*corev1.Pod{"p": pod}}
		if got := r.State(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFromEvents(t *testing.T) {
	pod := waitingPod("", "")
	at := func(s int64) metav1.Time { return metav1.Time{Time: time.Unix(s, 0)} }
	about := corev1.ObjectReference{UID: pod.UID}
	events := []corev1.Event{
		{Type: corev1.EventTypeWarning, Reason: "Later", InvolvedObject: about, LastTimestamp: at(20)},
		{Type: corev1.EventTypeWarning, Reason: "Earlier", InvolvedObject: about,
			EventTime: metav1.MicroTime{Time: time.Unix(10, 0)}},
		{Type: corev1.EventTypeNormal, Reason: "Pulling", InvolvedObject: about, LastTimestamp: at(30)},
		{Type: corev1.EventTypeWarning, Reason: "Another", InvolvedObject: corev1.ObjectReference{UID: "x"},
			LastTimestamp: at(40)},
	}
	if got := fromEvents(pod, events); got == nil || !strings.Contains(got.Error(), "Later") {
		t.Errorf("%v", got)
	}
	if got := fromEvents(pod, events[2:]); got != nil && strings.Contains(got.Error(), "Another") {
		t.Errorf("%v", got)
	}
}

func TestOnlyEndpoint(t *testing.T) {
	want := netip.MustParseAddrPort("10.0.0.1:5201")
	slice := func(ready bool, addresses ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{}
		for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Protocol: new(p), Port: new(int32(5201))})
		}
		for _, a := range addresses {
			s.Endpoints = append(s.Endpoints,
				discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: new(ready)}})
		}
		return s
	}
	for _, test := range []struct {
		name  string
		known []*discoveryv1.EndpointSlice
		says  string
	}{
		{"exact", []*discoveryv1.EndpointSlice{slice(true, "10.0.0.1")}, ""},
		{"and one that is not ready", []*discoveryv1.EndpointSlice{slice(true, "10.0.0.1"), slice(false, "10.0.0.2")}, ""},
		{"none", nil, "its endpoints are none"},
		{"not ready", []*discoveryv1.EndpointSlice{slice(false, "10.0.0.1")}, "its endpoints are none"},
		{"another", []*discoveryv1.EndpointSlice{slice(true, "10.0.0.2")}, "TCP 10.0.0.2 port 5201"},
		{"two", []*discoveryv1.EndpointSlice{slice(true, "10.0.0.1", "10.0.0.2")}, "TCP 10.0.0.2 port 5201"},
	} {
		known := map[string]*discoveryv1.EndpointSlice{}
		for i, s := range test.known {
			known[fmt.Sprint(i)] = s
		}
		err := OnlyEndpoint(known, want)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
