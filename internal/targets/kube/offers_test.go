package kube

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// By a network of pods nothing is reached but pods, whatever else there is.
func TestOffersByAttachment(t *testing.T) {
	k := &kubeTarget{options: options{Settings: manifest.Settings{Network: "default/fast"}, HostNetwork: true}}
	instead := &kubeTarget{options: options{Settings: manifest.Settings{DefaultNetwork: "a/b"}, HostNetwork: true}}
	for _, p := range append(targets.Paths(), "") {
		err := k.offersPath(p)
		between := p == targets.PodPodSame || p == targets.PodPodOther
		if between && err != nil || !between && (!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(),
			"default/fast")) {
			t.Errorf("%s: %v", p, err)
		}
		if err := instead.offersPath(p); err != nil {
			t.Errorf("%s by a network in place of the default one: %v", p, err)
		}
		k := &kubeTarget{options: options{HostNetwork: true}}
		if err := k.offersPath(p); err != nil {
			t.Errorf("%s by the default network: %v", p, err)
		}
	}
}

// Pods that runs make are pulled like the target's own: an image without a registry is on the node or not.
func TestEndpointImage(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		manifest.DefaultImage: corev1.PullNever, "registry.example/agent:1": corev1.PullIfNotPresent,
	} {
		k := &kubeTarget{options: options{Settings: manifest.Settings{Image: image}}}
		if e := k.endpoint("node-1"); e.Image != image || e.PullPolicy != string(want) {
			t.Errorf("%q is pulled %q, want %q pulled %q", e.Image, e.PullPolicy, image, want)
		}
	}
}

// Pods that runs make have the network that the target's own pods have in place of the default one.
func TestEndpointDefaultNetwork(t *testing.T) {
	k := &kubeTarget{options: options{Settings: manifest.Settings{DefaultNetwork: "a/b"}}}
	if got := k.endpoint("node-1").PodAnnotations["v1.multus-cni.io/default-network"]; got != "a/b" {
		t.Errorf("their default network is %q", got)
	}
}

// Changes are seen from a pod, by pods that have the agent.
func TestOffersChanges(t *testing.T) {
	change := targets.Call{Resource: "endpoint", Operation: targets.Effect}
	for reason, o := range map[string]options{
		"":             {},
		"vantage=here": {Here: true},
		"inject=yes":   {Settings: manifest.Settings{Inject: true}},
	} {
		k := &kubeTarget{options: o}
		err := k.offersChange(change)
		if reason == "" && err != nil || reason != "" && (!errors.Is(err, result.ErrNotSupported) ||
			!strings.Contains(err.Error(), reason)) {
			t.Errorf("%s: %v", reason, err)
		}
		if err := k.offersChange(targets.Call{Resource: "configmap", Operation: "get"}); err != nil {
			t.Errorf("%s: a call: %v", reason, err)
		}
	}
}

// A target whose pods look at their nodes asks the API server from a pod that does not.
func TestHolderPodWithProfile(t *testing.T) {
	k := &kubeTarget{options: options{Settings: manifest.Settings{Profile: true}}}
	if pod := k.holderPod(); len(pod.Containers) != 1 || pod.HostPID {
		t.Errorf("%+v", pod)
	}
}

// Pods look at nodes only for the runs of a path.
func TestProfileOfPlan(t *testing.T) {
	for _, p := range []targets.Placement{{Path: targets.PodPodOther}, {Call: targets.Call{Resource: "configmap"}}} {
		k := &kubeTarget{options: options{Settings: manifest.Settings{Profile: true}}}
		k.settleOn(targets.Plan{Placements: []targets.Placement{p}})
		privileged := k.level() == manifest.LevelPrivileged
		if privileged != (p.Path != "") || k.options.Profile != privileged {
			t.Errorf("%+v: level %s, profile %t", p, k.level(), k.options.Profile)
		}
	}
}
