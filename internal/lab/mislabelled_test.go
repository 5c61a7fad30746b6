//go:build linux

package lab_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A mislabelled datapath builds something other than it claims.
type mislabelled struct {
	lab.Datapath
	label   string
	claimed lab.Wire
	change  func(*lab.Plan)
}

func (l mislabelled) Name() string              { return l.label }
func (l mislabelled) Wire(result.Path) lab.Wire { return l.claimed }
func (l mislabelled) Plan(t lab.Topology) (lab.Plan, error) {
	p, err := l.Datapath.Plan(t)
	if err == nil && l.change != nil {
		l.change(&p)
	}
	return p, err
}

// A mislabelledPath datapath makes a false claim about one path only.
type mislabelledPath struct {
	mislabelled
	path result.Path
}

// Wire returns the false claim for that path, and the truth for others.
func (l mislabelledPath) Wire(path result.Path) lab.Wire {
	if path == l.path {
		return l.claimed
	}
	return l.Datapath.Wire(path)
}

// withoutSteps removes the steps whose line contains a text.
func withoutSteps(text string) func(*lab.Plan) {
	return func(p *lab.Plan) {
		var kept []lab.Step
		for _, s := range p.Steps {
			if !strings.Contains(s.Namespace+": "+s.Text, text) {
				kept = append(kept, s)
			}
		}
		p.Steps = kept
	}
}

// bypassTunnel routes packets past the tunnel in one direction.
func bypassTunnel(p *lab.Plan) {
	withoutSteps("node2: route add 10.244.1.0/24 dev vxlan0")(p)
	p.Add(lab.Node(2), lab.Route(netns.Route{Dst: lab.PodNet(1).V4, Dev: lab.Uplink, Via: lab.NodeAddr(1).V4,
		Src: lab.NodeAddr(2).V4}))
}

func findDatapath(name string) lab.Datapath {
	d, err := datapath.Kit.Datapath(name)
	if err != nil {
		panic(err)
	}
	return d
}

func mislabelledDatapaths() []mislabelled {
	overlay := findDatapath("vxlan").Wire(result.PodPodOther)
	other, id := overlay, overlay
	other.Layers = []string{"ipv4", "udp:8472", "vxlan:7", "ethernet"}
	id.Layers, id.Device = nil, "vxlan0"
	return []mislabelled{
		{findDatapath("native"), "native-as-vxlan", lab.Wire{Layers: overlay.Layers}, nil},
		{findDatapath("vxlan"), "vxlan-as-native", lab.Wire{}, nil},
		{findDatapath("vxlan"), "vxlan-of-another-id", other, nil},
		{findDatapath("vxlan"), "vxlan-one-way", overlay, bypassTunnel},
		{findDatapath("native"), "native-as-encrypted", lab.Wire{Layers: []string{"ipv4", "esp"}, Sealed: true}, nil},
		{findDatapath("vxlan"), "vxlan-as-encrypted", lab.Wire{Layers: overlay.Layers, Sealed: true}, nil},
		{findDatapath("native"), "native-as-macvlan", lab.Wire{PodMAC: true}, nil},
		{findDatapath("macvlan"), "macvlan-as-native", lab.Wire{}, nil},
		{findDatapath("native"), "native-as-local", lab.Wire{Quiet: true}, nil},
		{findDatapath("native"), "no-route-back", lab.Wire{}, withoutSteps("node2: route add 10.244.1.0/24")},
		{findDatapath("native"), "small-mtu", lab.Wire{}, func(p *lab.Plan) {
			p.Steps = append([]lab.Step{}, p.Steps...)
			for i, s := range p.Steps {
				if s.Namespace == lab.Node(1) && strings.HasPrefix(s.Text, "link add "+lab.Uplink+" ") {
					small := netns.Link{Name: lab.Uplink, MTU: 1400, MAC: lab.NodeMAC(1)}
					p.Steps[i].Op = lab.Veth(small, lab.Node(1), lab.Switch)
				}
			}
		}},
		{findDatapath("native"), "no-such-device", lab.Wire{}, func(p *lab.Plan) {
			p.Add(lab.Node(1), lab.Addr("eth7", netip.MustParsePrefix("192.0.2.1/24")))
		}},
	}
}

func mislabelledPaths() []mislabelledPath {
	apart := findDatapath("vxlan").Wire(result.PodPodOther)
	apart.Device = ""
	return []mislabelledPath{
		{mislabelled{findDatapath("native"), "native-with-a-quiet-underlay", lab.Wire{Quiet: true}, nil}, result.NodeNode},
		{mislabelled{findDatapath("vxlan"), "vxlan-past-its-device", apart, nil}, result.PodPodOther},
		{mislabelled{findDatapath("native+hbone"), "hbone-without-a-redirect", lab.Wire{}, withoutSteps("tproxy")}, ""},
		{mislabelled{findDatapath("native+hbone"), "hbone-of-other-port", lab.Wire{Layers: []string{"tcp:15009", "tls"},
			Sealed: true, Proxied: true}, nil}, result.PodPodOther},
		{mislabelled{findDatapath("native+hbone"), "hbone-as-native", lab.Wire{}, nil}, result.PodPodSame},
		{mislabelled{findDatapath("native"), "native-without-a-way-back", lab.Wire{},
			withoutSteps("node2: route add 10.244.1.0/24")}, ""},
	}
}

func mislabelledKit() lab.Kit {
	k := lab.Kit{Services: datapath.Kit.Services}
	for _, l := range mislabelledDatapaths() {
		k.Datapaths = append(k.Datapaths, l)
	}
	for _, l := range mislabelledPaths() {
		k.Datapaths = append(k.Datapaths, l)
	}
	return k
}

// TestOpenFindsOutWhatIsNotAsItsNameSays checks that a lab never measures something other than its name says.
func TestOpenFindsOutWhatIsNotAsItsNameSays(t *testing.T) {
	c := config()
	c.Kit, c.Argv = mislabelledKit(), []string{"/proc/self/exe", mislabelledArg}
	l := startLab(t, c)
	for _, test := range []struct{ name, says string }{
		{"native-as-vxlan",
			"expected [ipv4 udp:8472 vxlan:1 ethernet], saw 02:00:0a:00:00:01 > 02:00:0a:00:00:02: udp 10.244.1.11"},
		{"vxlan-as-native", "expected bare packets, saw 02:00:0a:00:00:01 > 02:00:0a:00:00:02: " +
			"[ipv4 udp:8472 vxlan:1 ethernet] 10.0.0.1 > 10.0.0.2 udp 10.244.1.11"},
		{"vxlan-of-another-id", "expected [ipv4 udp:8472 vxlan:7 ethernet], saw"},
		{"vxlan-one-way",
			"expected [ipv4 udp:8472 vxlan:1 ethernet], saw 02:00:0a:00:00:02 > 02:00:0a:00:00:01: udp 10.244.2.11"},
		{"native-as-encrypted", "the datapath encrypts, but the data was readable on the underlay"},
		{"vxlan-as-encrypted", "the datapath encrypts, but the data was readable on the underlay"},
		{"native-as-macvlan", "not from the client's device 02:00:0a:f4:01:0b"},
		{"macvlan-as-native", "not from the client's device 02:00:0a:00:00:01"},
		{"native-as-local", "the path stays within a node, but its data was on the underlay"},
		{"no-route-back", "node1/pod1 does not reach node2/pod1 at 10.244.2.11:5201 over UDP"},
		{"small-mtu", "a datagram of 1472 bytes, which the path should carry whole"},
		{"no-such-device", "node1: addr add 192.0.2.1/24 dev eth7: device eth7: Link not found"},
	} {
		site, err := openOne(t.Context(), l, test.name, lab.Default(), targets.Placement{Path: result.PodPodOther})
		switch {
		case err == nil:
			t.Errorf("%s: the false claim was not noticed", test.name)
			err = l.CloseSite(site.ID)
			if err != nil {
				t.Error(err)
			}
		case !strings.Contains(err.Error(), test.says) || errors.Is(err, result.ErrNotSupported):
			t.Errorf("%s: got %v\nwant %s", test.name, err, test.says)
		}
	}
}

// TestOpenLooksAtTheTunnelsCounters checks that a tunnel whose counters do not increase as they should is found out.
func TestOpenLooksAtTheTunnelsCounters(t *testing.T) {
	c := config()
	c.Kit, c.Argv = mislabelledKit(), []string{"/proc/self/exe", mislabelledArg}
	l := startLab(t, c)
	_, err := openOne(t.Context(), l, "vxlan-one-way", lab.Default(), targets.Placement{Path: result.PodPodOther})
	if want := "vxlan0 received"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestOpenFindsOutWhichPlacesAreNotAsTheyShould checks that a false claim fails only the places that it is about.
func TestOpenFindsOutWhichPlacesAreNotAsTheyShould(t *testing.T) {
	c := config()
	c.Kit, c.Argv = mislabelledKit(), []string{"/proc/self/exe", mislabelledArg}
	l := startLab(t, c)
	for name, says := range map[string]map[result.Path]string{
		"native-without-a-way-back": {
			result.PodNodeOther: "node1/pod1 does not reach node2 at",
			result.PodPodOther:  "node1/pod1 does not reach node2/pod1 at",
			result.PodSvcOther:  "node1/pod1 does not reach node2/pod1 at 10.96.0.3:5201",
		},
		"hbone-without-a-redirect": {
			result.PodPodSame:  "should be from a proxy, but was from the client itself at 10.244.1.11",
			result.PodSvcSame:  "should be from a proxy, but was from the client itself at 10.244.1.11",
			result.PodPodOther: "expected [tcp:15008 tls] sealed, saw 02:00:0a:00:00:01 > 02:00:0a:00:00:02: tcp 10.244.1.11",
			result.PodSvcOther: "expected [tcp:15008 tls] sealed, saw 02:00:0a:00:00:01 > 02:00:0a:00:00:02: tcp 10.244.1.11",
		},
		"hbone-of-other-port":          {result.PodPodOther: "expected [tcp:15009 tls] sealed, saw"},
		"hbone-as-native":              {result.PodPodSame: "but was from a proxy at 10.0.0.1"},
		"native-with-a-quiet-underlay": {result.NodeNode: "stays within a node, but its data was on the underlay"},
		"vxlan-past-its-device":        {result.PodPodOther: "vxlan0 received"},
	} {
		var placements []targets.Placement
		for _, path := range result.Paths() {
			placements = append(placements, targets.Placement{Path: path})
		}
		site, err := l.Open(t.Context(), name, lab.Default(), placements)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, p := range placements {
			err := site.Places[i].Err()
			if !matches(err, says[p.Path]) {
				t.Errorf("%s %s: got %v, want %q", name, p.Path, err, says[p.Path])
			}
		}
		if err := l.CloseSite(site.ID); err != nil {
			t.Error(err)
		}
	}
}

// matches reports whether an error contains a text, or is nil if the text is empty.
func matches(err error, text string) bool {
	if err == nil || text == "" {
		return err == nil && text == ""
	}
	return strings.Contains(err.Error(), text)
}
