//go:build linux

package lab

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/target"
)

// wires is a datapath of which only that is known.
type wires struct {
	Datapath
	of map[target.Path]Wire
}

func (w wires) Wire(p target.Path) Wire { return w.of[p] }

func TestCheckOrder(t *testing.T) {
	d := wires{of: map[target.Path]Wire{
		target.PodPodSame: {Quiet: true}, target.PodSvcSame: {Quiet: true},
		target.PodPodOther: {Device: "wg0", Sealed: true}, target.PodSvcOther: {Device: "wg0", Sealed: true},
	}}
	asked := []target.Placement{
		{Path: target.PodPodOther}, {Path: target.NodeNode}, {Path: target.PodSvcSame}, {Path: target.PodSvcOther},
		{Path: target.PodPodSame},
	}
	if got, want := checkOrder(d, asked), []int{2, 4, 1, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
