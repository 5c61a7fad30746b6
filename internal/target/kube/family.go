package kube

import (
	"errors"

	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/kube/diagnosis"
)

// refuse remembers on which paths something turned out not to be supported: an IP version, else pods in the network of
// their node.
func (k *kubeTarget) refuse(err error) {
	on := nodePath
	if none := new(diagnosis.NoFamily); errors.As(err, &none) {
		on = none.On
	}
	if k.refused == nil {
		k.refused = map[target.Path]error{}
	}
	for _, p := range target.Paths() {
		if k.refused[p] == nil && on(p) {
			k.refused[p] = err
		}
	}
}
