package registry

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/target/lab"
)

// The hidden commands by which the program starts itself again.
const (
	AgentCommand  = "agent"
	HolderCommand = "lab-holder"
)

// Kinds are the kinds of targets.
func Kinds() []Kind { return []Kind{labKind(), localKind(), kubeKind()} }

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
			{"dir=/var/tmp", "the directory of this machine that cases of storage measure"},
			{"label=NAME", "the target's name in all output"},
		},
		New: func(spec target.Spec) (target.Target, error) {
			return labtarget.New(spec, labConfig())
		},
		Features: features,
		Clean:    func(_ context.Context, _ []target.Spec, how target.Cleaning) ([]string, error) { return clean(how) },
	}
	for _, d := range datapath.Kit.Datapaths {
		k.Targets = append(k.Targets, Line{"lab:" + d.Name(), d.About()})
	}
	return k
}

func labConfig() lab.Config {
	return lab.Config{Kit: datapath.Kit, Argv: []string{self, HolderCommand}, Agent: []string{self, AgentCommand}}
}

// self is this program, whatever became of its file since it was started.
const self = "/proc/self/exe"
