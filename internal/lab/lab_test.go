//go:build linux

package lab_test

import (
	"context"
	"errors"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

func start(t testing.TB, c lab.Config) *lab.Lab {
	t.Helper()
	l, err := lab.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestEveryPathOfEveryDatapathTalks(t *testing.T) {
	for _, d := range kit().Datapaths {
		for _, ipv6 := range []bool{false, true} {
			topology := lab.Default()
			topology.IPv6 = ipv6
			name := d.Name() + "/4"
			if ipv6 {
				name = d.Name() + "/6"
			}
			t.Run(name, func(t *testing.T) {
				l := start(t, config())
				for i, path := range target.Paths() {
					if err := d.Carries(topology, path); err != nil {
						t.Logf("%s: %v", path, err)
						continue
					}
					if err := l.Probe(d.Name(), topology, path); errors.Is(err, result.ErrNotSupported) {
						t.Logf("%s: %v", path, err)
						continue
					}
					site, err := l.Open(context.Background(), d.Name(), topology, target.Placement{Path: path, Rotation: i})
					if err != nil {
						t.Errorf("%s: %v", path, err)
						continue
					}
					t.Log(path, site.Facts[5], site.MTU)
					if err := l.CloseSite(site.ID); err != nil {
						t.Errorf("%s: %v", path, err)
					}
				}
			})
		}
	}
}

func BenchmarkOpenClose(b *testing.B) {
	for _, d := range kit().Datapaths {
		b.Run(d.Name(), func(b *testing.B) {
			path := target.PodPodOther
			if d.Carries(lab.Default(), path) != nil {
				path = target.NodeNode
			}
			l := start(b, config())
			if err := l.Probe(d.Name(), lab.Default(), path); errors.Is(err, result.ErrNotSupported) {
				b.Skip(err)
			}
			for b.Loop() {
				site, err := l.Open(context.Background(), d.Name(), lab.Default(), target.Placement{Path: path})
				if err != nil {
					b.Fatal(err)
				}
				if err := l.CloseSite(site.ID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
