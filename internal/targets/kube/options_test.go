package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestNodeWish checks that the options about nodes are passed on to their choice.
func TestNodeWish(t *testing.T) {
	w := parseOptions(t, "kube:?client-node=a&server-node=b&zones=across&rotate-nodes=yes&config=testdata/settings.yaml&"+
		"node-selector=topology.kubernetes.io/zone%3Dz1").NodeConstraints
	if w.Client != "a" || w.Server != "b" || !w.Across || !w.Rotate || len(w.Tolerations) != 1 ||
		w.Tolerations[0].Key != "dedicated" {
		t.Errorf("%+v", w)
	}
	if !w.Selector.Matches(labels.Set{corev1.LabelTopologyZone: "z1"}) || w.Selector.Matches(labels.Set{}) {
		t.Errorf("the selector is %s", w.Selector)
	}
	w = parseOptions(t, "kube:").NodeConstraints
	if w.Client != "" || w.Server != "" || w.Across || w.Rotate || len(w.Tolerations) > 0 ||
		!w.Selector.Matches(labels.Set{}) {
		t.Errorf("by default: %+v", w)
	}
}
