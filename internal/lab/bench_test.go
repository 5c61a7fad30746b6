//go:build linux

package lab_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// runTime stands for the run between opening and closing a site. The kernel ends what the check used meanwhile.
const runTime = 100 * time.Millisecond

// quick are the paths of network:quick.
var quick = []targets.Path{targets.PodPodOther, targets.PodSvcOther, targets.NodeNode}

func BenchmarkOpen(b *testing.B)  { benchmark(b, true) }
func BenchmarkClose(b *testing.B) { benchmark(b, false) }

// benchmark times one of the two; a site is two nodes and four pods, with those places of network:quick that it has.
func benchmark(b *testing.B, opening bool) {
	for _, d := range datapath.Kit.Datapaths {
		b.Run(d.Name(), func(b *testing.B) {
			l := start(b, config())
			var placements []targets.Placement
			for _, path := range quick {
				if d.Carries(lab.Default(), path) == nil && l.Probe(d.Name(), lab.Default(), path) == nil {
					placements = append(placements, targets.Placement{Path: path})
				}
			}
			if len(placements) == 0 {
				b.Skip("this kernel has no such datapath")
			}
			b.ResetTimer()
			b.StopTimer()
			for range b.N {
				once(b, l, d.Name(), placements, opening)
			}
		})
	}
}

func once(b *testing.B, l *lab.Lab, datapath string, placements []targets.Placement, opening bool) {
	timed := func(on bool, f func()) {
		if on {
			b.StartTimer()
		}
		f()
		b.StopTimer()
	}
	var site lab.SiteInfo
	var err error
	timed(opening, func() { site, err = l.Open(context.Background(), datapath, lab.Default(), placements) })
	for _, p := range site.Places {
		err = errors.Join(err, p.Err())
	}
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(runTime)
	timed(!opening, func() { err = l.CloseSite(site.ID) })
	if err != nil {
		b.Fatal(err)
	}
}
