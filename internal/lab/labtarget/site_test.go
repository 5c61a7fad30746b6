//go:build linux

package labtarget

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/knotmeter/knotmeter/internal/agent"
	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/native"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// whoVerb is the verb that makes an agent identify itself.
const whoVerb = "who"

// An identity is the network namespace of an agent, and how often it was asked for its identity.
type identity struct {
	Namespace string
	Asked     int
}

// identify returns the handler of whoVerb. It counts the requests to one agent.
func identify() agent.Handler {
	asked := 0
	return agent.Handle(func(context.Context, agent.Call, struct{}) (identity, error) {
		asked++
		namespace, err := os.Readlink("/proc/self/ns/net")
		return identity{namespace, asked}, err
	})
}

// openSite opens a site with a place for each path, all of which must be supported.
func openSite(t *testing.T, tg targets.Target, paths ...result.Path) targets.Site {
	t.Helper()
	var placements []targets.Placement
	for _, path := range paths {
		placements = append(placements, targets.Placement{Path: path})
	}
	s, err := tg.Open(t.Context(), placements)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for i, place := range s.Places {
		if place.Err != nil {
			t.Fatalf("%s: %v", paths[i], place.Err)
		}
	}
	return s
}

func TestPlacesOfASiteShareAgents(t *testing.T) {
	s := openSite(t, open(t, "lab:native"), result.Paths()...)
	asked, namespaces := map[string]int{}, map[string]string{}
	for i, place := range s.Places {
		ends := lab.EndsOf(lab.Plan{}, lab.Default(), targets.Placement{Path: result.Paths()[i]})
		if place.Client.Name() != ends.Client.Name || place.Server.Name() != ends.Server.Name {
			t.Errorf("%s: the hosts are %s and %s", result.Paths()[i], place.Client.Name(), place.Server.Name())
		}
		for _, h := range []host.Host{place.Client, place.Server} {
			asked[h.Name()]++
			id, err := agent.Do[identity](t.Context(), h, agent.Request{Verb: whoVerb, Body: struct{}{}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if before := namespaces[h.Name()]; id.Asked != asked[h.Name()] || before != "" && before != id.Namespace {
				t.Errorf("%s is %+v, before in %q; asked %d times", h.Name(), id, before, asked[h.Name()])
			}
			namespaces[h.Name()] = id.Namespace
		}
	}
	different := map[string]bool{}
	for _, namespace := range namespaces {
		different[namespace] = true
	}
	if len(namespaces) != 5 || len(different) != 5 {
		t.Errorf("the agents of 2 nodes and 3 pods were in %v", namespaces)
	}
}

// TestAgentsArePinnedByTheirEnd checks that a host that is the client of one place and the server of another is pinned
// to the CPUs of its end.
func TestAgentsArePinnedByTheirEnd(t *testing.T) {
	if client, server, err := splitCPUs(); err != nil || slices.Equal(client, server) {
		t.Skipf("needs two CPUs: %v, %v, %v", client, server, err)
	}
	tg := open(t, "lab:native")
	s := openSite(t, tg, result.NodeNode, result.PodNodeSame, result.NodeSvcSame)
	l, is := tg.(*labTarget)
	if !is || len(l.clientCPUs) > 1 || len(l.serverCPUs) > 1 {
		t.Skip("the tool picks among several CPUs")
	}
	w, err := netload.Parse("tcp-stream")
	if err != nil {
		t.Fatal(err)
	}
	tool := native.New()
	for range 2 {
		for i, place := range s.Places {
			times := family.Times{Warmup: 20 * time.Millisecond, Window: 200 * time.Millisecond}
			m, err := tool.Run(t.Context(), place.Pair, network.Workload{Spec: w}, times)
			if err != nil {
				t.Fatalf("place %d: %v", i, err)
			}
			for name, cpu := range map[string]int{"cpu.client": l.clientCPUs[0], "cpu.server": l.serverCPUs[0]} {
				if want := (result.Fact{Name: name, Value: strconv.Itoa(cpu)}); !slices.Contains(m.Facts, want) {
					t.Errorf("place %d: %v is not among %v", i, want, m.Facts)
				}
			}
		}
	}
}

func TestPartsOfASite(t *testing.T) {
	tg := open(t, "lab:macvlan?dir="+t.TempDir())
	s, err := tg.Open(t.Context(), []targets.Placement{
		{Path: result.PodNodeSame}, {Volume: true}, {Path: "nowhere"}, {Path: result.PodPodOther},
		{Volume: true, Program: "no-such-program"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(s.Places[0].Err, result.ErrNotSupported) || !errors.Is(s.Places[2].Err, result.ErrNotSupported) ||
		!errors.Is(s.Places[4].Err, result.ErrNotSupported) {
		t.Errorf("there are places that are not supported: %+v", s.Places)
	}
	if volume := s.Places[1]; volume.Err != nil || volume.Volume.Path == "" || volume.Server != nil {
		t.Errorf("storage: %+v", volume)
	}
	if pods := s.Places[3]; pods.Err != nil || pods.Server == nil || pods.Server.Name() != "node2/pod1" {
		t.Errorf("pods: %+v", pods)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
