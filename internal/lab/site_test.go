//go:build linux

package lab

import (
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A fakeDatapath is a datapath of which only the wires are known.
type fakeDatapath struct {
	Datapath
	of map[result.Path]Wire
}

func (w fakeDatapath) Wire(p result.Path) Wire { return w.of[p] }

func TestCheckOrder(t *testing.T) {
	d := fakeDatapath{of: map[result.Path]Wire{
		result.PodPodSame: {Quiet: true}, result.PodSvcSame: {Quiet: true},
		result.PodPodOther: {Device: "wg0", Sealed: true}, result.PodSvcOther: {Device: "wg0", Sealed: true},
	}}
	asked := []targets.Placement{
		{Path: result.PodPodOther}, {Path: result.NodeNode}, {Path: result.PodSvcSame}, {Path: result.PodSvcOther},
		{Path: result.PodPodSame},
	}
	if got, want := checkOrder(d, asked), []int{2, 4, 1, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
