package kube

import (
	"errors"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/manifest"
)

// By a network of pods nothing is reached but pods, whatever else there is.
func TestOffersByAttachment(t *testing.T) {
	k := &kubeTarget{options: options{Settings: manifest.Settings{Network: "default/fast"}, HostNetwork: true}}
	for _, p := range append(target.Paths(), "") {
		err := k.offersPath(p)
		between := p == target.PodPodSame || p == target.PodPodOther
		if between && err != nil || !between && (!errors.Is(err, result.ErrNotSupported) || !strings.Contains(err.Error(),
			"default/fast")) {
			t.Errorf("%s: %v", p, err)
		}
		k := &kubeTarget{options: options{HostNetwork: true}}
		if err := k.offersPath(p); err != nil {
			t.Errorf("%s by the default network: %v", p, err)
		}
	}
}

// Changes are seen from a pod, by pods that have the agent.
func TestOffersChanges(t *testing.T) {
	change := target.Call{Resource: "endpoint", Operation: target.Effect}
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
		if err := k.offersChange(target.Call{Resource: "configmap", Operation: "get"}); err != nil {
			t.Errorf("%s: a call: %v", reason, err)
		}
	}
}
