//go:build linux

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
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

// try opens and closes a site on the paths given, or on all paths of a datapath, with a rotation that differs from path
// to path. Open checks that the ends talk over the datapath.
func try(t *testing.T, l *lab.Lab, d lab.Datapath, topology lab.Topology, paths ...target.Path) {
	t.Helper()
	if len(paths) == 0 {
		paths = target.Paths()
	}
	opened := 0
	for i, path := range paths {
		err := d.Carries(topology, path)
		if err == nil {
			err = l.Probe(d.Name(), topology, path)
		}
		if errors.Is(err, result.ErrNotSupported) {
			t.Logf("%s: %v", path, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		site, err := l.Open(context.Background(), d.Name(), topology, target.Placement{Path: path, Rotation: i})
		if err != nil {
			t.Errorf("open: %v", err)
			continue
		}
		opened++
		if err := l.CloseSite(site.ID); err != nil {
			t.Errorf("close %s: %v", path, err)
		}
	}
	if opened == 0 {
		t.Skip("this kernel has no such datapath")
	}
}

func TestEveryPathOfEveryDatapathTalks(t *testing.T) {
	for _, d := range datapath.Kit.Datapaths {
		for _, ipv6 := range []bool{false, true} {
			topology := lab.Default()
			topology.IPv6 = ipv6
			t.Run(fmt.Sprintf("%s/ipv6=%t", d.Name(), ipv6), func(t *testing.T) {
				t.Parallel()
				try(t, start(t, config()), d, topology)
			})
		}
	}
}

func TestWorksInAUserNamespace(t *testing.T) {
	c := config()
	c.UserNamespace = true
	for _, d := range datapath.Kit.Datapaths {
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			try(t, start(t, c), d, lab.Default(), target.NodeNode, target.PodPodOther, target.NodeSvcOther)
		})
	}
}

func TestOptionsOfATopology(t *testing.T) {
	for name, topology := range map[string]lab.Topology{
		"mtu":   {Nodes: 2, MTU: 9000, Services: "nftables"},
		"most":  {Nodes: 2, MTU: lab.MaxMTU, Services: "nftables"},
		"rate":  {Nodes: 2, MTU: 1500, Rate: 100_000_000, Services: "nftables"},
		"nodes": {Nodes: 5, MTU: 1500, Services: "nftables"},
	} {
		for _, d := range datapath.Kit.Datapaths {
			t.Run(name+"/"+d.Name(), func(t *testing.T) {
				t.Parallel()
				try(t, start(t, config()), d, topology, target.NodeNode, target.PodPodOther)
			})
		}
	}
}
