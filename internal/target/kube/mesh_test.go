package kube

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/knotmeter/knotmeter/internal/target"
)

// Every pod of ours asks every mesh to leave it alone, unless the user asks for one.
func TestMeshesLeaveOut(t *testing.T) {
	b := plan(t, "kube:?vault=deploy", target.App)
	asked := plan(t, `kube:?config={labels: {sidecar.istio.io/inject: "true"}, annotations: {linkerd.io/inject: enabled}}`, target.PodPodOther)
	pods := []*corev1.Pod{b.pod(client), b.vaultPod(0), plan(t, "kube:", target.NodeNode).pod(server), plan(t, "kube:", target.Storage).pod(client)}
	for _, p := range pods {
		for key, value := range meshLabels() {
			if p.Labels[key] != value {
				t.Errorf("%s: label %s=%q", p.Name, key, p.Labels[key])
			}
		}
		for key, value := range meshAnnotations() {
			if p.Annotations[key] != value {
				t.Errorf("%s: annotation %s=%q", p.Name, key, p.Annotations[key])
			}
		}
	}
	p := asked.pod(client)
	if p.Labels["sidecar.istio.io/inject"] != "true" || p.Annotations["linkerd.io/inject"] != "enabled" || p.Labels[labelManaged] != managedBy {
		t.Errorf("%v %v", p.Labels, p.Annotations)
	}
}

// inMesh is a pod that runs, with what a mesh adds: a proxy before ours, an init container and one that stays.
func inMesh() *corev1.Pod {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Labels: map[string]string{labelRole: string(client)}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "istio-proxy", Image: "proxy"}, {Name: containerName, Image: "img:1"}},
			InitContainers: []corev1.Container{
				{Name: "istio-init"}, {Name: "collector", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "istio-proxy", State: running, ImageID: "proxy@sha256:1"}, {Name: containerName, State: running, ImageID: "img@sha256:2"},
			},
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "istio-init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, {Name: "collector", State: running},
			},
		},
	}
}

// A pod runs when our container does, whatever else is in it; and that is told.
func TestSidecars(t *testing.T) {
	p := inMesh()
	if !runs(p) || diagnose(p) != nil || imageOf(p, "").digest != "sha256:2" || ownContainer(p).Image != "img:1" {
		t.Errorf("runs %t, %v, %+v", runs(p), diagnose(p), imageOf(p, ""))
	}
	const want = "client: istio-proxy, istio-init (init), collector (sidecar)"
	pods := map[string]*corev1.Pod{"p": p}
	if got := sidecarFact(pods).Value; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := sidecarWarnings(pods); len(got) != 1 || !strings.Contains(got[0], want) {
		t.Errorf("%q", got)
	}
	alone := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: containerName}}}}
	if got := sidecarWarnings(map[string]*corev1.Pod{"p": alone}); len(got) > 0 || sidecarFact(nil).Value != "none" {
		t.Errorf("alone: %q", got)
	}
	alone.Annotations = map[string]string{ambient: "enabled"}
	if got := sidecars(map[string]*corev1.Pod{"p": alone}); !strings.Contains(got, "Istio's ambient mesh") {
		t.Errorf("ambient: %q", got)
	}
	debugged := p.DeepCopy()
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger"}}}
	if got := podAilment(p, debugged, false); !strings.Contains(got, "to istio-proxy, istio-init (init), collector (sidecar), debugger (ephemeral)") {
		t.Errorf("%q", got)
	}
}

// What others put into a pod and what keeps ours from running is said, within seconds and not when all time is over.
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
		}, trouble, "the container istio-init of pod p, which is not Knotmeter's, ended with status 1"},
		"init does not end": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}, initTime, "the container istio-init of pod p, which is not Knotmeter's, has not ended; something in the cluster adds it"},
		"proxy's image": {func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = waits("ImagePullBackOff") }, trouble, "istio-proxy"},
		"ours": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses[1].State = waits("ErrImageNeverPull")
		}, 0, "can not get the image img:1"},
		"taken out": {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, 0, "pod p has no container agent"},
	} {
		p := inMesh()
		p.Status.Phase = corev1.PodPending
		p.Status.ContainerStatuses[1].State = waits("PodInitializing")
		test.change(p)
		began, first, said := time.Unix(1000, 0), time.Duration(-1), ""
		w := &patience{want: 1, pods: map[string]*corev1.Pod{"p": p}, since: map[string]time.Time{}, asked: began.Add(time.Hour)}
		for after := time.Duration(0); after <= time.Minute && first < 0; after += time.Second {
			if _, err := w.judge(began.Add(after)); err != nil {
				first, said = after, err.Error()
			}
		}
		if first != test.after || !strings.Contains(said, test.says) {
			t.Errorf("%s: after %v, want %v: %q", name, first, test.after, said)
		}
	}
}

// Where the cluster has security context constraints, users and groups of pods are left to them, and nowhere else.
func TestUsersOfOpenShift(t *testing.T) {
	api := fake.NewClientset()
	c := &cluster{Interface: api}
	if c.assignsUsers() {
		t.Error("any cluster is taken for OpenShift")
	}
	api.Resources = append(api.Resources, &metav1.APIResourceList{GroupVersion: sccGroup + "/v1"})
	if !c.assignsUsers() {
		t.Error("OpenShift is not known by its API")
	}
	for _, assigned := range []bool{false, true} {
		storage, app := plan(t, "kube:", target.Storage), plan(t, "kube:?vault=deploy", target.App)
		storage.options.assigned, app.options.assigned = assigned, assigned
		for _, p := range []*corev1.Pod{storage.pod(client), app.pod(client), app.vaultPod(0)} {
			s := p.Spec.SecurityContext
			if (s.RunAsUser == nil) != assigned || (s.RunAsGroup == nil) != assigned || !*s.RunAsNonRoot || s.SeccompProfile == nil {
				t.Errorf("assigned %t: %s: %+v", assigned, p.Name, s)
			}
		}
		for _, p := range []*corev1.Pod{storage.pod(client), app.vaultPod(0)} {
			if s := p.Spec.SecurityContext; (s.FSGroup == nil) != assigned {
				t.Errorf("assigned %t: %s: the file system's group is %v", assigned, p.Name, s.FSGroup)
			}
		}
	}
}
