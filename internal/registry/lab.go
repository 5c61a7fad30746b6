package registry

import (
	"context"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/target"
	labtarget "github.com/knotmeter/knotmeter/internal/target/lab"
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
		Options: labtarget.Options(),
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
