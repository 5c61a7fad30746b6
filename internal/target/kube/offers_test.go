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
