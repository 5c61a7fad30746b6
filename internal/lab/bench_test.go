//go:build linux

package lab_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// runTime is the time of a run between opening and closing a site. Meanwhile the kernel removes what the check used.
const runTime = 100 * time.Millisecond

// quickPaths are the paths of network:quick.
var quickPaths = []result.Path{result.PodPodOther, result.PodSvcOther, result.NodeNode}

func BenchmarkOpen(b *testing.B)  { benchmark(b, true) }
func BenchmarkClose(b *testing.B) { benchmark(b, false) }

// benchmark times opening or closing a site of two nodes and four pods, with those places of network:quick that the
// datapath carries.
func benchmark(b *testing.B, opening bool) {
	for _, d := range datapath.Kit.Datapaths {
		b.Run(d.Name(), func(b *testing.B) {
			l := startLab(b, config())
			var placements []targets.Placement
			for _, path := range quickPaths {
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
				measureOnce(b, l, d.Name(), placements, opening)
			}
		})
	}
}

func measureOnce(b *testing.B, l *lab.Lab, datapath string, placements []targets.Placement, opening bool) {
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
