package registry

import (
	"context"
	"errors"
	"os"
	"runtime"

	"github.com/knotmeter/knotmeter/internal/image"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/datapath"
	"github.com/knotmeter/knotmeter/internal/lab/labtarget"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/local"
)

// The hidden commands by which the program starts itself again.
const (
	AgentCommand  = "agent"
	HolderCommand = "lab-holder"
)

// AgentImage is the default name of the agent's image.
const AgentImage = manifest.DefaultImage

// self is this program, even if its file was moved or removed since it started.
const self = "/proc/self/exe"

// Kinds returns all kinds of targets.
func Kinds() []Kind { return []Kind{labKind(), localKind(), kubeKind()} }

func labKind() Kind {
	k := Kind{
		Name: "lab", Example: "lab:vxlan?mtu=9000&label=jumbo", Options: labtarget.Options(),
		New:      func(spec result.Spec) (targets.Target, error) { return labtarget.New(spec, labConfig()) },
		Features: features,
		Clean:    func(_ context.Context, _ []result.Spec, how targets.Cleaning) ([]string, error) { return clean(how) },
	}
	for _, d := range datapath.Kit.Datapaths {
		k.Targets = append(k.Targets, Line{"lab:" + d.Name(), d.About()})
	}
	return k
}

func labConfig() lab.Config {
	return lab.Config{Kit: datapath.Kit, Argv: []string{self, HolderCommand}, Agent: []string{self, AgentCommand}}
}

func localKind() Kind {
	return Kind{
		Name: "local", Example: "local:/var/tmp?size=4GiB&label=disk", Options: local.Options(),
		Targets: []Line{
			{"local:DIR", "storage in a directory of this machine (an absolute path), and applications"},
			{"local:", "this machine: CPUs, memory and kernel, and applications, asked from it"},
		},
		Names:   local.Directories,
		New:     func(s result.Spec) (targets.Target, error) { return local.New(s, agentHere()...) },
		Clean:   local.Clean,
		Inspect: true,
	}
}

// agentHere returns the command line of the agent on this machine.
func agentHere() []string {
	own, err := os.Executable()
	if runtime.GOOS == "linux" || err != nil {
		own = self
	}
	return []string{own, AgentCommand}
}

func kubeKind() Kind {
	return Kind{
		Name: "kube", Example: "kube:production?zones=across&label=zones", Options: kube.Options(),
		Targets: []Line{
			{"kube:CONTEXT", "any Kubernetes cluster, by its context in the kubeconfig; kube: is the current one"},
		},
		Names: cluster.Contexts,
		New: func(s result.Spec) (targets.Target, error) {
			return kube.New(s, Families().Needs(), image.Agent, self, AgentCommand)
		},
		Clean:   cleanClusters,
		Inspect: true,
		RBAC: func(s result.Spec, wide bool) (string, error) {
			return kube.RBAC(s, wide, Families().Needs())
		},
		Uses: cluster.Uses,
		Pin:  cluster.PinContext,
	}
}

// cleanClusters cleans the given clusters and no others.
func cleanClusters(ctx context.Context, specs []result.Spec, how targets.Cleaning) ([]string, error) {
	var removed []string
	var errs []error
	for _, spec := range specs {
		names, err := kube.Clean(ctx, spec, image.Agent, how)
		removed, errs = append(removed, names...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}
