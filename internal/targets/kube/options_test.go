package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What options say of nodes is what nodes are chosen by.
func TestNodeWish(t *testing.T) {
	w := read(t, "kube:?client-node=a&server-node=b&zones=across&rotate-nodes=yes&config=testdata/settings.yaml&"+
		"node-selector=topology.kubernetes.io/zone%3Dz1").NodeConstraints
	if w.Client != "a" || w.Server != "b" || !w.Across || !w.Rotate || len(w.Tolerations) != 1 ||
		w.Tolerations[0].Key != "dedicated" {
		t.Errorf("%+v", w)
	}
	if !w.Selector.Matches(labels.Set{corev1.LabelTopologyZone: "z1"}) || w.Selector.Matches(labels.Set{}) {
		t.Errorf("the selector is %s", w.Selector)
	}
	w = read(t, "kube:").NodeConstraints
	if w.Client != "" || w.Server != "" || w.Across || w.Rotate || len(w.Tolerations) > 0 ||
		!w.Selector.Matches(labels.Set{}) {
		t.Errorf("by default: %+v", w)
	}
}
