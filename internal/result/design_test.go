package result

import (
	"math"
	"strings"
	"testing"
)

func TestDesignRanges(t *testing.T) {
	for _, c := range []struct {
		change func(d *Design)
		want   string // the beginning of the error; "" if there is none
	}{
		{func(d *Design) {}, ""},
		{func(d *Design) { d.Looks = nil }, ""},
		{func(d *Design) { d.Alpha = 0 }, "alpha: 0 is not between 0 and 0.5"},
		{func(d *Design) { d.Alpha = 0.5 }, "alpha: 0.5 "},
		{func(d *Design) { d.Alpha = math.NaN() }, "alpha: NaN "},
		{func(d *Design) { d.Delta = 0 }, "delta: 0 "},
		{func(d *Design) { d.Delta = -1 }, "delta: -1 "},
		{func(d *Design) { d.Delta = 1 }, "delta: 1 is not between 0 and 1 (100 %)"},
		{func(d *Design) { d.Delta = math.NaN() }, "delta: NaN "},
		{func(d *Design) { d.Looks = []int{0, 11} }, "looks: [0 11] are not numbers of blocks from 1 on"},
		{func(d *Design) { d.Looks = []int{8, 8, 11} }, "looks: [8 8 11] "},
		{func(d *Design) { d.Looks = []int{8} }, "looks: the last look is after 8 blocks, but there are 11"},
		{func(d *Design) { d.Looks = make([]int, 51) }, "looks: 51 looks are more than 50"},
	} {
		d := Design{Blocks: 11, Looks: []int{8, 11}, Alpha: 0.05, Delta: 0.02}
		c.change(&d)
		err := d.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", d, err, c.want)
		}
	}
}
