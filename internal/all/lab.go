package all

import (
	"context"
	"errors"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/bpf"
	"github.com/knotmeter/knotmeter/internal/lab/cgroup"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/bridge"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/host"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/hostdevice"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipip"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipsec"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/ipvlan"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/macvlan"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/native"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/vxlan"
	"github.com/knotmeter/knotmeter/internal/lab/datapath/wireguard"
	"github.com/knotmeter/knotmeter/internal/lab/nft"
	"github.com/knotmeter/knotmeter/internal/lab/probe"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/lab"
)

// The hidden commands by which the program starts itself again.
const (
	AgentCommand  = "agent"
	HolderCommand = "lab-holder"
)

// Kit is what labs are built from.
func Kit() lab.Kit {
	return lab.Kit{
		Datapaths: []lab.Datapath{
			host.New(), native.New(), vxlan.New(), ipip.New(), bridge.New(), macvlan.New(), ipvlan.New(), hostdevice.New(),
			wireguard.Native(), wireguard.VXLAN(), ipsec.Native(), ipsec.VXLAN(),
		},
		Services: []lab.Services{nft.Services{}, bpf.Connect{}},
		Features: probe.Features(),
	}
}

// Kinds are the kinds of targets.
func Kinds() []Kind { return []Kind{labKind()} }

func labKind() Kind {
	k := Kind{
		Name:    "lab",
		Example: "lab:vxlan?mtu=9000&label=jumbo",
		Options: []Line{
			{"mtu=1500", "of the underlay, in bytes; pods have what the datapath leaves"},
			{"rate=1Gbit/s", "of each node's uplink; unlimited without it"},
			{"services=nftables", "how a Service's address becomes its endpoint's: nftables or ebpf"},
			{"nodes=2", "from 2 to 16"},
			{"delay=5ms", "that the underlay adds to each round trip; it is carried by a process then"},
			{"loss=1%", "of the IP packets that come from the underlay, at random"},
			{"ip=4", "the IP version of the traffic: 4 or 6"},
			{"label=NAME", "the target's name in all output"},
		},
		New: func(spec target.Spec) (target.Target, error) {
			return labtarget.New(spec, labConfig())
		},
		Features: features,
		Clean:    func(context.Context) ([]string, error) { return cgroup.Clean() },
	}
	for _, d := range Kit().Datapaths {
		k.Targets = append(k.Targets, Line{"lab:" + d.Name(), d.About()})
	}
	return k
}

func labConfig() lab.Config {
	return lab.Config{Kit: Kit(), Argv: []string{self, HolderCommand}, Agent: []string{self, AgentCommand}}
}

// features tries what the kernel has, where sites are made.
func features() ([]string, error) {
	l, err := lab.Start(labConfig())
	if err != nil {
		return nil, err
	}
	found, err := l.Features()
	var lines []string
	for _, f := range found {
		line := fmt.Sprintf("%-24s %s, for %s", f.Name, f.Answer, f.Use)
		if f.Reason != "" {
			line += "\n    " + f.Reason
		}
		if f.Remedy != "" {
			line += "\n    what would change that: " + f.Remedy
		}
		lines = append(lines, line)
	}
	return lines, errors.Join(err, l.Close())
}

// self is this program, whatever became of its file since it was started.
const self = "/proc/self/exe"
