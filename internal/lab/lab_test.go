//go:build linux

package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func startLab(t testing.TB, c lab.Config) *lab.Lab {
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

// A singleSite is a site with one place.
type singleSite struct {
	lab.PlaceInfo
	ID int
}

// openOne opens a site with one place. The error may be that of the site or of the place.
func openOne(
	ctx context.Context, l *lab.Lab, datapath string, t lab.Topology, p targets.Placement,
) (singleSite, error) {
	site, err := l.Open(ctx, datapath, t, []targets.Placement{p})
	if err != nil {
		return singleSite{}, err
	}
	place := site.Places[0]
	if err := place.Err(); err != nil {
		return singleSite{}, errors.Join(err, l.CloseSite(site.ID))
	}
	return singleSite{place, site.ID}, nil
}

// checkPaths opens and closes a site with the given paths, or with all paths of a datapath, in each direction. Open
// checks that the ends of each path reach each other over the datapath.
func checkPaths(t *testing.T, l *lab.Lab, d lab.Datapath, topology lab.Topology, paths ...result.Path) {
	t.Helper()
	if len(paths) == 0 {
		paths = result.Paths()
	}
	paths = slices.DeleteFunc(slices.Clone(paths), func(path result.Path) bool {
		err := l.Probe(d.Name(), topology, path)
		if err != nil && !errors.Is(err, result.ErrNotSupported) {
			t.Errorf("%s: %v", path, err)
		}
		return err != nil
	})
	if len(paths) == 0 {
		t.Skip("this kernel has no such datapath")
	}
	for rotation := range 2 {
		checkPathsOnce(t, l, d, topology, paths, rotation)
	}
}

// checkPathsOnce opens one site with a place for each path, and checks the places that the datapath carries.
func checkPathsOnce(
	t *testing.T, l *lab.Lab, d lab.Datapath, topology lab.Topology, paths []result.Path, rotation int,
) {
	t.Helper()
	var placements []targets.Placement
	for _, path := range paths {
		placements = append(placements, targets.Placement{Path: path, Rotation: rotation})
	}
	plan, err := d.Plan(topology)
	if err != nil {
		t.Errorf("plan: %v", err)
		return
	}
	site, err := l.Open(context.Background(), d.Name(), topology, placements)
	if err != nil {
		t.Errorf("open: %v", err)
		return
	}
	// The reply is one message. A site with several programs on each path has several times as many places.
	const most = 16 << 10
	if text, err := json.Marshal(site); err != nil || len(text) > most {
		t.Errorf("the answer takes %d bytes, more than %d: %v", len(text), most, err)
	}
	for i, p := range placements {
		if carried := d.Carries(topology, p.Path); carried != nil {
			if err := site.Places[i].Err(); !errors.Is(err, result.ErrNotSupported) || err.Error() != carried.Error() {
				t.Errorf("%s: got %v, want %v", p.Path, err, carried)
			}
			continue
		}
		checkPlace(t, site.Places[i], lab.EndsOf(plan, topology, p))
	}
	if err := l.CloseSite(site.ID); err != nil {
		t.Errorf("close: %v", err)
	}
}

func checkPlace(t *testing.T, place lab.PlaceInfo, ends lab.Ends) {
	t.Helper()
	if err := place.Err(); err != nil {
		t.Error(err)
		return
	}
	if place.Client != ends.Client || place.Server != ends.Server || place.Dial != ends.Dial ||
		place.Listen != ends.Listen || place.MTU == 0 || !slices.ContainsFunc(place.Facts, func(f result.Fact) bool {
		return f == result.Fact{Name: "client", Value: ends.Client.Name}
	}) {
		t.Errorf("got %+v, want %+v", place, ends)
	}
}

func TestEveryPathOfEveryDatapathTalks(t *testing.T) {
	for _, d := range datapath.Kit.Datapaths {
		for _, ipv6 := range []bool{false, true} {
			topology := lab.Default()
			topology.IPv6 = ipv6
			t.Run(fmt.Sprintf("%s/ipv6=%t", d.Name(), ipv6), func(t *testing.T) {
				t.Parallel()
				checkPaths(t, startLab(t, config()), d, topology)
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
			checkPaths(t, startLab(t, c), d, lab.Default(), result.NodeNode, result.PodPodOther, result.NodeSvcOther)
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
				checkPaths(t, startLab(t, config()), d, topology, result.NodeNode, result.PodPodOther)
			})
		}
	}
}

// TestStressChecksInOneSite checks that the packets of one check do not disturb the next: it opens many sites, each
// with all paths.
func TestStressChecksInOneSite(t *testing.T) {
	for _, name := range []string{"native", "vxlan", "native+wireguard", "native+ipsec"} {
		d := findDatapath(name)
		for _, services := range []string{"nftables", "ebpf"} {
			for _, ipv6 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/ipv6=%t", name, services, ipv6), func(t *testing.T) {
					t.Parallel()
					topology := lab.Default()
					topology.Services, topology.IPv6 = services, ipv6
					l := startLab(t, config())
					for range 10 {
						checkPaths(t, l, d, topology)
					}
				})
			}
		}
	}
}
