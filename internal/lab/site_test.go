//go:build linux

package lab

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/targets"
)

// A fakeDatapath is a datapath of which only the wires are known.
type fakeDatapath struct {
	Datapath
	of map[targets.Path]Wire
}

func (w fakeDatapath) Wire(p targets.Path) Wire { return w.of[p] }

func TestCheckOrder(t *testing.T) {
	d := fakeDatapath{of: map[targets.Path]Wire{
		targets.PodPodSame: {Quiet: true}, targets.PodSvcSame: {Quiet: true},
		targets.PodPodOther: {Device: "wg0", Sealed: true}, targets.PodSvcOther: {Device: "wg0", Sealed: true},
	}}
	asked := []targets.Placement{
		{Path: targets.PodPodOther}, {Path: targets.NodeNode}, {Path: targets.PodSvcSame}, {Path: targets.PodSvcOther},
		{Path: targets.PodPodSame},
	}
	if got, want := checkOrder(d, asked), []int{2, 4, 1, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
