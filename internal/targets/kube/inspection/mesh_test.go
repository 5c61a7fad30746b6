package inspection

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
)

// admitted returns a pod from YAML, with the fields of a pod that a mesh's webhook or agent has changed.
func admitted(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// daemonSetNamed returns a daemon set with the name and the container of a project's chart.
func daemonSetNamed(name, image string) appsv1.DaemonSet {
	d := daemonSet(image)
	d.Name = name
	return d
}

// listeners returns a report of a pod in whose network namespace sockets listen at ports.
func listeners(ports ...uint16) *preflight.Report {
	r := &preflight.Report{Sockets: []machine.Socket{}}
	for _, p := range ports {
		r.Sockets = append(r.Sockets, machine.Socket{Local: end("0.0.0.0", p), Listening: true})
	}
	return r
}

// TestMeshFacts checks the facts about each mesh, from pods and daemon sets as these meshes make them.
func TestMeshFacts(t *testing.T) {
	const plain = "spec: {containers: [{name: agent, image: a}]}"
	cilium := map[string]map[string]string{CiliumMap: {"enable-ztunnel": "true", "routing-mode": "native"}}
	for name, test := range map[string]struct {
		e    Evidence
		want string // mesh; mode; version
	}{
		"no pod": {Evidence{}, "unknown; ; "},
		"no table of sockets": {Evidence{Pod: &preflight.Report{}, Admitted: admitted(t, plain)},
			"unknown; ; "},
		"none": {Evidence{Pod: listeners(5201), Admitted: admitted(t, plain), Config: cilium},
			"none (containers, annotations and sockets of the pods); ; "},
		"Istio's sidecar": {Evidence{Pod: listeners(15001, 15006, 15021, 15090), Admitted: admitted(t, `
metadata: {annotations: {sidecar.istio.io/status: '{"initContainers":["istio-init"],"containers":["istio-proxy"]}'}}
spec:
  initContainers: [{name: istio-init, image: "docker.io/istio/proxyv2:1.27.3"}]
  containers: [{name: istio-proxy, image: "docker.io/istio/proxyv2:1.27.3"}, {name: agent, image: a}]
`)}, "istio (container istio-proxy of the pods); sidecar; 1.27.3 (image of the container istio-proxy)"},
		"Linkerd's native sidecar": {Evidence{Pod: listeners(4143, 4140, 4191), Admitted: admitted(t, `
metadata: {annotations: {linkerd.io/proxy-version: edge-25.9.4}}
spec:
  initContainers:
  - {name: linkerd-init, image: "cr.l5d.io/linkerd/proxy-init:v2.4.3"}
  - {name: linkerd-proxy, image: "cr.l5d.io/linkerd/proxy:edge-25.9.4", restartPolicy: Always}
  containers: [{name: agent, image: a}]
`)}, "linkerd (container linkerd-proxy of the pods); sidecar; edge-25.9.4 (image of the container linkerd-proxy)"},
		"Istio's ambient mode": {Evidence{
			Pod:        listeners(15001, 15006, 15008),
			DaemonSets: []appsv1.DaemonSet{daemonSetNamed("ztunnel", "docker.io/istio/ztunnel:1.27.3-distroless")},
			Admitted: admitted(t, `
metadata: {annotations: {ambient.istio.io/redirection: enabled}}
`+plain)}, "istio (annotation ambient.istio.io/redirection of the pods); ambient; 1.27.3-distroless (image of the " +
			"daemon set ztunnel)"},
		"Cilium's ztunnel": {Evidence{
			Pod: listeners(15001, 15006, 15008), Config: cilium, Admitted: admitted(t, plain),
			DaemonSets: []appsv1.DaemonSet{daemonSetNamed("cilium", "quay.io/cilium/cilium:v1.19.3"),
				daemonSetNamed("ztunnel-cilium", "quay.io/cilium/ztunnel:v1.0.0@sha256:0123")},
		}, "cilium (port 15008 in the pods, config map cilium-config); ztunnel; v1.0.0 (image of the daemon set " +
			"ztunnel-cilium)"},
		"another ztunnel": {Evidence{Pod: listeners(15008), Admitted: admitted(t, plain)},
			"unknown (port 15008 in the pods); ambient; unknown"},
		"an image without a tag": {Evidence{Pod: listeners(), Admitted: admitted(t,
			"spec: {containers: [{name: kuma-sidecar, image: 'kuma/kuma-dp@sha256:0123'}]}")},
			"kuma (container kuma-sidecar of the pods); sidecar; unknown"},
	} {
		facts := test.e.Facts()
		shown := map[string]string{}
		for _, f := range facts {
			shown[f.Name] = f.String()
		}
		got := shown["mesh"] + "; " + shown["mesh.mode"] + "; " + shown["mesh.version"]
		if got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
	}
}
