//go:build linux

package lab_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

func TestPlans(t *testing.T) {
	for name, topology := range map[string]lab.Topology{
		"two": lab.Default(),
		"three": {Nodes: 3, MTU: 9000, Rate: 1_000_000_000, Services: "nftables", Rules: 100, Pods: lab.Pods{
			MTU: 4000, OffloadsOff: true, Congestion: "reno", Buffer: 64 << 10, Backlog: 16}},
	} {
		for _, d := range datapath.Kit.Datapaths {
			t.Run(name+"/"+d.Name(), func(t *testing.T) {
				plan, err := datapath.Kit.Plan(d.Name(), topology)
				if err != nil {
					t.Fatal(err)
				}
				golden.Check(t, "testdata/plans/"+d.Name()+"-"+name+".txt", plan.String())
			})
		}
	}
}

// TestPlansAreConsistent checks that every step of a plan is in one of its namespaces, and that no step occurs twice.
func TestPlansAreConsistent(t *testing.T) {
	for _, d := range datapath.Kit.Datapaths {
		for nodes := lab.MinNodes; nodes <= lab.MaxNodes; nodes += 7 {
			topology := lab.Default()
			topology.Nodes = nodes
			plan, err := datapath.Kit.Plan(d.Name(), topology)
			if err != nil {
				t.Fatalf("%s: %v", d.Name(), err)
			}
			known := map[string]bool{}
			for _, name := range plan.Namespaces {
				if known[name] {
					t.Errorf("%s: namespace %s is made twice", d.Name(), name)
				}
				known[name] = true
			}
			seen := map[string]bool{}
			for _, s := range plan.Steps {
				line := s.Namespace + ": " + s.Text
				if !known[s.Namespace] || seen[line] {
					t.Errorf("%s: step in no namespace, or done twice: %s", d.Name(), line)
				}
				seen[line] = true
			}
		}
	}
}

// TestNeeds checks which features of the kernel each datapath needs: those of its steps, without which no path is
// measured, and those of single paths.
func TestNeeds(t *testing.T) {
	var text strings.Builder
	for _, d := range datapath.Kit.Datapaths {
		plan, err := datapath.Kit.Plan(d.Name(), lab.Default())
		if err != nil {
			t.Fatalf("%s: %v", d.Name(), err)
		}
		var features []string
		for _, s := range plan.Steps {
			if s.Feature != "" && !slices.Contains(features, s.Feature) {
				features = append(features, s.Feature)
			}
		}
		fmt.Fprintf(&text, "%s: %s\n", d.Name(), strings.Join(features, ", "))
		for _, path := range result.Paths() {
			features = nil
			for _, op := range plan.Needs[path] {
				features = append(features, op.Feature)
			}
			if features = slices.Compact(features); len(features) > 0 {
				fmt.Fprintf(&text, "%s, only %s: %s\n", d.Name(), path, strings.Join(features, ", "))
			}
		}
	}
	golden.Check(t, "testdata/needs.txt", text.String())
}

func TestPathsAndWires(t *testing.T) {
	carried := func(d lab.Datapath, services string) string {
		topology := lab.Default()
		topology.Services = services
		var lines []string
		for _, path := range result.Paths() {
			if err := d.Carries(topology, path); err != nil {
				lines = append(lines, string(path)+": not supported: "+err.Error())
				continue
			}
			w := d.Wire(path)
			text := strings.Join(w.Layers, " ")
			switch {
			case w.Quiet:
				text = "nothing on the underlay"
			case text == "":
				text = "bare packets"
			}
			if w.PodMAC {
				text += ", from the pod's own device"
			}
			if w.Device != "" {
				text += ", through " + w.Device
			}
			lines = append(lines, string(path)+": "+text)
		}
		return "services=" + services + "\n" + strings.Join(lines, "\n") + "\n"
	}
	for _, d := range datapath.Kit.Datapaths {
		t.Run(d.Name(), func(t *testing.T) {
			golden.Check(t, "testdata/plans/"+d.Name()+"-paths.txt", carried(d, "nftables")+carried(d, "ebpf"))
		})
	}
}

func TestTopologyIsChecked(t *testing.T) {
	for text, topology := range map[string]lab.Topology{
		"nodes=1 is not from 2 to 16":           {Nodes: 1, MTU: 1500, Services: "nftables"},
		"nodes=17 is not from 2 to 16":          {Nodes: 17, MTU: 1500, Services: "nftables"},
		"mtu=576 is not from 1500 to 9216":      {Nodes: 2, MTU: 576, Services: "nftables"},
		"rate=7 is not from 1 Mbit/s":           {Nodes: 2, MTU: 1500, Rate: 7, Services: "nftables"},
		"services=ipvs is not one of nftables":  {Nodes: 2, MTU: 1500, Services: "ipvs"},
		`there is no datapath "carrier-pigeon"`: lab.Default(),
	} {
		name := "native"
		if strings.Contains(text, "datapath") {
			name = "carrier-pigeon"
		}
		if _, err := datapath.Kit.Plan(name, topology); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

func TestEndsOfPlacementsInATunnel(t *testing.T) {
	for path, dial := range map[result.Path]string{
		result.NodeNode: "10.0.0.2:5201", result.PodNodeOther: "10.245.0.2:5201", result.NodeSvcOther: "10.96.0.3:5201",
	} {
		e := lab.EndsOf(lab.Plan{HasTunnelAddrs: true}, lab.Topology{Nodes: 2}, targets.Placement{Path: path})
		if e.Dial.String() != dial {
			t.Errorf("%s: dials %s, want %s", path, e.Dial, dial)
		}
		if node := e.Client.Addr.String(); path == result.NodeSvcOther && node != "10.245.0.1" {
			t.Errorf("%s: the client is at %s", path, node)
		}
	}
}

func TestEndsOfPlacements(t *testing.T) {
	for _, c := range []struct {
		path                 result.Path
		rotation             int
		client, server, dial string
	}{
		{result.NodeNode, 0, "node1", "node2", "10.0.0.2:5201"},
		{result.NodeNode, 2, "node3", "node1", "10.0.0.1:5201"},
		{result.NodeNode, -1, "node3", "node1", "10.0.0.1:5201"},
		{result.PodNodeSame, 0, "node1/pod1", "node1", "10.0.0.1:5201"},
		{result.PodNodeOther, 1, "node2/pod1", "node3", "10.0.0.3:5201"},
		{result.PodPodSame, 4, "node2/pod1", "node2/pod2", "10.244.2.12:5201"},
		{result.PodPodOther, 0, "node1/pod1", "node2/pod1", "10.244.2.11:5201"},
		{result.NodeSvcSame, 0, "node1", "node1/pod2", "10.96.0.2:5201"},
		{result.NodeSvcOther, 0, "node1", "node2/pod1", "10.96.0.3:5201"},
		{result.PodSvcSame, 1, "node2/pod1", "node2/pod2", "10.96.0.4:5201"},
		{result.PodSvcOther, 2, "node3/pod1", "node1/pod1", "10.96.0.1:5201"},
	} {
		e := lab.EndsOf(lab.Plan{}, lab.Topology{Nodes: 3}, targets.Placement{Path: c.path, Rotation: c.rotation})
		if e.Client.Name != c.client || e.Server.Name != c.server || e.Dial.String() != c.dial {
			t.Errorf("%s, rotation %d: %s to %s at %s, want %s to %s at %s",
				c.path, c.rotation, e.Client.Name, e.Server.Name, e.Dial, c.client, c.server, c.dial)
		}
		if e.Listen.Addr() != e.Server.Addr || e.Listen.Port() != lab.ServicePort {
			t.Errorf("%s: listens at %s", c.path, e.Listen)
		}
	}
}
