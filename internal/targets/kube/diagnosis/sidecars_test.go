package diagnosis

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// inMesh returns a running pod with a proxy, an init container and a sidecar of a mesh.
func inMesh() *corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p",
			Labels: map[string]string{manifest.LabelRole: string(manifest.Client)}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "istio-proxy", Image: "proxy"},
				{Name: manifest.ContainerName, Image: "img:1"}},
			InitContainers: []corev1.Container{
				{Name: "istio-init"}, {Name: "collector", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "istio-proxy", State: running, ImageID: "proxy@sha256:1"},
				{Name: manifest.ContainerName, State: running, ImageID: "img@sha256:2"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "istio-init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
				{Name: "collector", State: running},
			},
		},
	}
}

// TestSidecars checks that a pod runs when the agent's container does, whatever the cluster added, and that what it
// added is reported.
func TestSidecars(t *testing.T) {
	p := inMesh()
	if !inspection.Runs(p) || diagnose(p) != nil || inspection.ImageOf(p, "").Digest != "sha256:2" ||
		inspection.OwnContainer(p).Image != "img:1" {
		t.Errorf("runs %t, %v, %+v", inspection.Runs(p), diagnose(p), inspection.ImageOf(p, ""))
	}
	const want = "client: istio-proxy, istio-init (init), collector (sidecar)"
	pods := map[string]*corev1.Pod{"p": p}
	if got := inspection.SidecarFact(pods).Value; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := inspection.SidecarWarnings(pods); len(got) != 1 || !strings.Contains(got[0].Text, want) {
		t.Errorf("%q", got)
	}
	alone := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: manifest.ContainerName}}}}
	if got := inspection.SidecarWarnings(map[string]*corev1.Pod{"p": alone}); len(got) > 0 ||
		inspection.SidecarFact(nil).Value != "none" {
		t.Errorf("alone: %q", got)
	}
	alone.Annotations = map[string]string{"ambient.istio.io/redirection": "enabled"}
	if got := inspection.SidecarFact(map[string]*corev1.Pod{"p": alone}).Value; !strings.Contains(got,
		"Istio's ambient mesh") {
		t.Errorf("ambient: %q", got)
	}
	debugged := p.DeepCopy()
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"},
	}}
	if got := PodDisruption(p, debugged, false); !strings.Contains(got, "to istio-proxy, istio-init (init), collector "+
		"(sidecar), debugger (ephemeral)") {
		t.Errorf("%q", got)
	}
}

// TestHeldBySidecars checks that an added container that prevents the agent's from running is reported within seconds,
// not at the timeout.
func TestHeldBySidecars(t *testing.T) {
	waits := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		after  time.Duration
		says   string
	}{
		"begins": {func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].State = waits("PodInitializing") }, -1, ""},
		"init fails": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1
		}, problemGrace, "the container istio-init of pod p, which is not Knotmeter's, ended with status 1"},
		"init does not end": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, initTime, "the container istio-init of pod p, which is not Knotmeter's, has not ended; something in the " +
			"cluster adds it"},
		"proxy's image": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = waits("ImagePullBackOff")
		}, problemGrace, "istio-proxy"},
		"ours": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[1].State = waits("ErrImageNeverPull")
		}, 0, "cannot get the image img:1"},
		"taken out": {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, 0, "pod p has no container agent"},
	} {
		p := inMesh()
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses[1].State = waits("PodInitializing")
		test.change(p)
		began, first, said := time.Unix(1000, 0), time.Duration(-1), ""
		w := &Readiness{want: 1, Pods: map[string]*corev1.Pod{"p": p}, problemSince: map[string]time.Time{},
			eventsRead: began.Add(time.Hour)}
		for after := time.Duration(0); after <= time.Minute && first < 0; after += time.Second {
			if _, err := w.AllRunning(began.Add(after)); err != nil {
				first, said = after, err.Error()
			}
		}
		if first != test.after || !strings.Contains(said, test.says) {
			t.Errorf("%s: after %v, want %v: %q", name, first, test.after, said)
		}
	}
}
