package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/cluster"
	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
	"github.com/knotmeter/knotmeter/internal/targets/kube/volumes"
	"github.com/knotmeter/knotmeter/internal/vault"
)

// defaultPort is the default of port=.
const defaultPort = 5201

// options holds the parsed options of a target.
type options struct {
	Kubeconfig        cluster.Kubeconfig
	Namespace         string // "" if one is created
	manifest.Settings        // of pods and Services
	inspection.NodeConstraints
	HostNetwork bool
	Here        bool // vantage=here: this machine asks the API server
	Vault       vault.Instance
}

var allSettings = slices.Concat(
	podOptions,
	targets.Within(func(o *options) *manifest.Volume { return &o.Volume }, volumes.Settings),
	targets.Within(func(o *options) *cluster.Kubeconfig { return &o.Kubeconfig }, cluster.Settings),
	targets.Within(func(o *options) *vault.Instance { return &o.Vault }, vault.DeploySettings()),
)

// podOptions are the options about pods, their nodes and their network.
var podOptions = []targets.Setting[options]{
	targets.NewSetting(targets.Option{Name: "namespace", Example: "NAME", Field: "namespace",
		Help: "existing namespace to use, instead of one that is made and removed"},
		func(o *options) *string { return &o.Namespace }, targets.CheckedText(manifest.CheckName)),
	targets.NewSetting(targets.Option{
		Name: "image", Example: "REF", Help: "image of the agent, best with its digest (default " + manifest.DefaultImage +
			")"}, func(o *options) *string { return &o.Image }, targets.Image("registry.example/knotmeter-agent@sha256:…")),
	targets.NewSetting(targets.Option{
		Name: "inject", Example: "yes", Value: targets.Switch, Field: "inject",
		Help: "put the agent into pods of the image that image= names; it needs a shell, not the agent"},
		func(o *options) *bool { return &o.Inject }, targets.YesOrNo),
	targets.NewSetting(targets.Option{
		Name: "client-node", Example: "NAME", Help: "the client's node, instead of one that is chosen"},
		func(o *options) *string { return &o.Client }, targets.CheckedText(manifest.CheckName)),
	targets.NewSetting(targets.Option{
		Name: "server-node", Example: "NAME", Help: "the server's node on paths between nodes", Needs: "client-node"},
		func(o *options) *string { return &o.Server }, targets.CheckedText(manifest.CheckName)),
	targets.NewSetting(targets.Option{Name: "node-selector", Example: "k=v,…", Help: "use only nodes with these labels"},
		func(o *options) *labels.Selector { return &o.Selector }, parseSelector),
	targets.NewSetting(targets.Option{Name: "zones", Example: "same", Help: "zones of the two nodes: same, or across"},
		func(o *options) *bool { return &o.Across }, targets.Choice("same", "across")),
	targets.NewSetting(targets.Option{
		Name: "rotate-nodes", Example: "yes", Value: targets.Switch, Field: "rotateNodes",
		Help: "use another pair of nodes in each block, every node as often as the others"},
		func(o *options) *bool { return &o.Rotate }, targets.YesOrNo),
	targets.NewSetting(targets.Option{Name: "host-network", Example: "no", Value: targets.Switch,
		Help: "no pods in the nodes' own network, and no node paths (default: yes)"},
		func(o *options) *bool { return &o.HostNetwork }, targets.YesOrNo),
	targets.NewSetting(targets.Option{
		Name: "profile", Example: "yes", Value: targets.Switch, Field: "profile",
		Help: "sample the CPUs of the nodes by kernel layer and read their counters; pods are privileged, which wants --yes"},
		func(o *options) *bool { return &o.Profile }, targets.YesOrNo),
	targets.NewSetting(targets.Option{
		Name: "runtime-class", Example: "NAME", Help: "runtime class of the pods, such as Kata or gVisor"},
		func(o *options) *string { return &o.RuntimeClass }, targets.CheckedText(manifest.CheckName)),
	targets.NewSetting(targets.Option{
		Name: "network", Example: "NAME", Help: "Multus attachment that the pods' traffic takes; pod-pod paths only"},
		func(o *options) *string { return &o.Network }, targets.CheckedText(manifest.CheckAttachment)),
	targets.NewSetting(targets.Option{Name: "default-network", Example: "NAMESPACE/NAME",
		Help: "Multus attachment in place of the pods' default network, such as macvlan or SR-IOV; all paths"},
		func(o *options) *string { return &o.DefaultNetwork }, targets.CheckedText(manifest.CheckDefaultAttachment)),
	targets.NewSetting(targets.Option{Name: "namespace-labels", Example: "k=v,…",
		Help: "labels of the namespace that is made; those of a mesh enrol its pods"},
		func(o *options) *map[string]string { return &o.NamespaceLabels }, manifest.ParseLabels),
	targets.NewSetting(targets.Option{Name: "pod-labels", Example: "k=v,…",
		Help: "labels of the pods, in addition to those of config=; those of a mesh enrol them"},
		func(o *options) *map[string]string { return &o.PodLabels }, manifest.ParseLabels),
	targets.NewSetting(targets.Option{Name: "pod-annotations", Example: "k=v,…",
		Help: "annotations of the pods, in addition to those of config=; those of a mesh enrol them"},
		func(o *options) *map[string]string { return &o.PodAnnotations }, manifest.ParseAnnotations),
	targets.NewSetting(targets.Option{
		Name: "ip", Example: "4", Help: "IP version of the traffic: 4 or 6 (default: the cluster's first)"},
		func(o *options) *corev1.IPFamily { return &o.Family }, parseFamily),
	targets.NewSetting(targets.Option{Name: "vantage", Example: "pod",
		Help: "where the API server is asked from: a pod, or here, which is this machine with the kubeconfig's credentials"},
		func(o *options) *bool { return &o.Here }, targets.Choice("pod", "here")),
	targets.NewSetting(targets.Option{Name: "port", Example: strconv.Itoa(defaultPort), Help: "the one port of a run"},
		func(o *options) *int { return &o.Port }, parsePort),
	{
		Option: targets.Option{
			Name: "config", Example: "FILE", Value: targets.Document, Field: "pods",
			Help: "YAML file with tolerations, imagePullSecrets, resources, annotations and labels of the pods; " +
				"or the YAML itself, in braces",
		},
		Set: func(o *options, value string) error { return o.Pods.Read(value) },
	},
}

// Options lists the options of a kube target.
func Options() []targets.Option { return targets.Options(allSettings) }

// parse returns the options of a target. Every error Is result.ErrSpec and names the option.
func parse(spec result.Spec) (options, error) {
	o := options{
		Kubeconfig: cluster.Kubeconfig{Context: spec.Name}, HostNetwork: true,
		NodeConstraints: inspection.NodeConstraints{Selector: labels.Everything()},
		Settings: manifest.Settings{
			Image: manifest.DefaultImage, Port: defaultPort, Volume: manifest.AnyVolume(),
			Pods: manifest.PodSettings{Resources: manifest.DefaultResources()},
		},
	}
	if err := targets.Read(spec, allSettings, &o); err != nil {
		return o, err
	}
	o.Tolerations = o.Pods.Tolerations
	o.Volume.Given = targets.GivesAny(spec, volumes.Settings)
	var err error
	switch {
	case o.Inject && spec.Options["image"] == "":
		err = fmt.Errorf("inject=yes needs image=, one of your own that has %s: the default image has the agent already",
			manifest.ShellNeeds)
	case o.Namespace != "" && len(o.NamespaceLabels) > 0:
		err = fmt.Errorf("namespace-labels= is for a namespace that is made; label the one that exists instead: kubectl "+
			"label namespace %s KEY=VALUE", o.Namespace)
	case o.Client != "" && o.Client == o.Server:
		err = errors.New("client-node and server-node are the same node; paths on one node are measured on the client's")
	case o.Network != "" && o.DefaultNetwork != "":
		err = errors.New("the pods' traffic takes network= or default-network=, not both; leave one out")
	case o.Volume.Use == manifest.Reuse && o.Rotate:
		err = errors.New("volume=reuse and rotate-nodes=yes: a volume that stays is measured on one node")
	default:
		err = cmp.Or(volumes.Check(spec, o.Volume), o.Vault.Check())
	}
	if err != nil {
		return o, fmt.Errorf("%w: %s: %w", result.ErrSpec, spec.Label(), err)
	}
	return o, nil
}

func parseSelector(value string) (labels.Selector, error) { return labels.Parse(value) }

func parseFamily(value string) (corev1.IPFamily, error) {
	six, err := targets.Choice("4", "6")(value)
	if six {
		return corev1.IPv6Protocol, nil
	}
	return corev1.IPv4Protocol, err
}

func parsePort(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1024 || n > 65535 {
		return 0, errors.New("it is a port from 1024 to 65535: pods without privileges have no lower ones")
	}
	return n, nil
}
