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
	"github.com/knotmeter/knotmeter/internal/target"
)

// runTime stands for the run between opening and closing a site. The kernel ends what the check used meanwhile.
const runTime = 100 * time.Millisecond

func BenchmarkOpen(b *testing.B)  { benchmark(b, true) }
func BenchmarkClose(b *testing.B) { benchmark(b, false) }

// benchmark times one of the two; a site is two nodes and four pods, and on the path from pod to pod between nodes.
func benchmark(b *testing.B, opening bool) {
	for _, d := range datapath.Kit.Datapaths {
		b.Run(d.Name(), func(b *testing.B) {
			path := target.PodPodOther
			if d.Carries(lab.Default(), path) != nil {
				path = target.NodeNode
			}
			l := start(b, config())
			if err := l.Probe(d.Name(), lab.Default(), path); errors.Is(err, result.ErrNotSupported) {
				b.Skip(err)
			}
			b.ResetTimer()
			b.StopTimer()
			for range b.N {
				once(b, l, d.Name(), path, opening)
			}
		})
	}
}

func once(b *testing.B, l *lab.Lab, datapath string, path target.Path, opening bool) {
	timed := func(on bool, f func()) {
		if on {
			b.StartTimer()
		}
		f()
		b.StopTimer()
	}
	var site lab.SiteInfo
	var err error
	timed(opening, func() {
		site, err = l.Open(context.Background(), datapath, lab.Default(), target.Placement{Path: path})
	})
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(runTime)
	timed(!opening, func() { err = l.CloseSite(site.ID) })
	if err != nil {
		b.Fatal(err)
	}
}
