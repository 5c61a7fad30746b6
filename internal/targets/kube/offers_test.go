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

// TestOffersByAttachment checks that an additional network of pods supports only paths between pods.
func TestOffersByAttachment(t *testing.T) {
	k := &named{options: options{Settings: manifest.Settings{Network: "default/fast"}, HostNetwork: true}}
	replaced := &named{options: options{Settings: manifest.Settings{DefaultNetwork: "a/b"}, HostNetwork: true}}
	for _, p := range append(result.Paths(), "") {
		err := k.checkPath(p)
		between := p == result.PodPodSame || p == result.PodPodOther
		if between && err != nil || !between && (!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(),
			"default/fast")) {
			t.Errorf("%s: %v", p, err)
		}
		if err := replaced.checkPath(p); err != nil {
			t.Errorf("%s by a network in place of the default one: %v", p, err)
		}
		k := &named{options: options{HostNetwork: true}}
		if err := k.checkPath(p); err != nil {
			t.Errorf("%s by the default network: %v", p, err)
		}
	}
}

// TestEndpointImage checks that pods that runs create are pulled like the target's own: an image without a registry
// must be on the node.
func TestEndpointImage(t *testing.T) {
	for image, want := range map[string]corev1.PullPolicy{
		manifest.DefaultImage: corev1.PullNever, "registry.example/agent:1": corev1.PullIfNotPresent,
	} {
		k := &claimed{reached: &reached{named: &named{options: options{Settings: manifest.Settings{Image: image}}}}}
		if e := k.endpoint("node-1"); e.Image != image || e.PullPolicy != string(want) {
			t.Errorf("%q is pulled %q, want %q pulled %q", e.Image, e.PullPolicy, image, want)
		}
	}
}

// TestEndpointDefaultNetwork checks that pods that runs create have the same replacement of the default network as the
// target's own pods.
func TestEndpointDefaultNetwork(t *testing.T) {
	k := &claimed{reached: &reached{named: &named{options: options{
		Settings: manifest.Settings{DefaultNetwork: "a/b"}}}}}
	if got := k.endpoint("node-1").PodAnnotations["v1.multus-cni.io/default-network"]; got != "a/b" {
		t.Errorf("their default network is %q", got)
	}
}

// TestOffersChanges checks that changes are measured only from a pod, and only with pods whose image has the agent.
func TestOffersChanges(t *testing.T) {
	for reason, o := range map[string]options{
		"":             {},
		"vantage=here": {Here: true},
		"inject=yes":   {Settings: manifest.Settings{Inject: true}},
	} {
		k := &named{options: o}
		err := k.checkProbed(targets.Placement{AsksAPI: true, ProbesPods: true})
		if reason == "" && err != nil || reason != "" && (!errors.Is(err, result.ErrNotSupported) ||
			!strings.Contains(err.Error(), reason)) {
			t.Errorf("%s: %v", reason, err)
		}
		if err := k.checkProbed(targets.Placement{AsksAPI: true}); err != nil {
			t.Errorf("%s: a call: %v", reason, err)
		}
	}
}

// TestHolderPodWithProfile checks that with profile=yes the pod template of an account's Job is not privileged.
func TestHolderPodWithProfile(t *testing.T) {
	k := &claimed{reached: &reached{named: &named{options: options{Settings: manifest.Settings{Profile: true}}}}}
	if pod := k.accountJobPod(); len(pod.Containers) != 1 || pod.HostPID {
		t.Errorf("%+v", pod)
	}
}

// TestProfileOfPlan checks that pods profile their nodes only if a planned run has a path.
func TestProfileOfPlan(t *testing.T) {
	for _, p := range []targets.Placement{{Path: result.PodPodOther}, {AsksAPI: true}} {
		k := &named{options: options{Settings: manifest.Settings{Profile: true}}}
		k.setPlan(targets.Plan{Placements: []targets.Placement{p}})
		privileged := k.podSecurityLevel() == manifest.LevelPrivileged
		if privileged != (p.Path != "") || k.options.Profile != privileged {
			t.Errorf("%+v: level %s, profile %t", p, k.podSecurityLevel(), k.options.Profile)
		}
	}
}
