package manifest

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/knotmeter/knotmeter/internal/host/remote"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Blueprint is what a group of pods is made from.
type Blueprint struct {
	Settings   Settings
	Namespace  string
	Experiment string                  // random, of this target in this process
	Site       int                     // counted in the experiment, group by group
	Placements []targets.Placement     // that the group is for, all with the same ends
	Nodes      [2]string               // client's, server's
	Archs      [2]string               // of these nodes; empty if unknown
	Account    string                  // whose token the client has; empty: none
	Owners     []metav1.OwnerReference // with which the pods go
	Reuse      bool                    // the volume is that of all blocks
}

func (b Blueprint) Labels(r Role) map[string]string {
	l := map[string]string{
		LabelManaged: ManagedBy, LabelName: AgentName, LabelExperiment: b.Experiment, LabelSite: strconv.Itoa(b.Site),
	}
	if r != "" {
		l[LabelRole] = string(r)
	}
	return l
}

// Selector finds what belongs to the group.
func (b Blueprint) Selector() string {
	return labels.Set{LabelExperiment: b.Experiment, LabelSite: strconv.Itoa(b.Site)}.String()
}

func (b Blueprint) Name(r Role) string {
	return fmt.Sprintf("knotmeter-%s-%d-%s", b.Experiment, b.Site, r)
}

// Paths are those of the placements, each once; without a server it is none, once.
func (b Blueprint) Paths() []targets.Path {
	var paths []targets.Path
	for _, p := range b.Placements {
		if !slices.Contains(paths, p.Path) {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// path stands for all of them, where their ends matter.
func (b Blueprint) path() targets.Path { return b.Placements[0].Path }

// HasVolume says whether the client has a volume.
func (b Blueprint) HasVolume() bool { return b.Placements[0].Volume }

// AsksAPI says whether the client asks the API server.
func (b Blueprint) AsksAPI() bool { return b.Placements[0].AsksAPI() }

// OnTwoNodes says whether client and server are on different nodes.
func (b Blueprint) OnTwoNodes() bool { return b.path().Other() }

// ClientOnly says that there is no server: the client asks somebody who is there already.
func (b Blueprint) ClientOnly() bool { return b.path() == "" }

// Profiles says whether the ends look at their nodes: only those of paths do.
func (b Blueprint) Profiles() bool { return b.Settings.Profile && !b.ClientOnly() }

// Roles are the ends that there are.
func (b Blueprint) Roles() []Role {
	if b.ClientOnly() {
		return []Role{Client}
	}
	return []Role{Client, Server}
}

// InPod says whether an end has a pod's network, not its node's.
func (b Blueprint) InPod(r Role) bool {
	if r == Client {
		return b.path().ClientPod() || b.ClientOnly()
	}
	return b.path().ServerPod()
}

// UsesService says whether a client dials the Service.
func (b Blueprint) UsesService() bool { return slices.ContainsFunc(b.Paths(), targets.Path.Service) }

func (b Blueprint) Node(r Role) string {
	if r == Client {
		return b.Nodes[0]
	}
	return b.Nodes[1]
}

// HostName is the name of the host: its node, and what it is there.
func (b Blueprint) HostName(r Role) string {
	switch {
	case !b.InPod(r):
		return b.Node(r)
	case b.InPod(Client) && b.InPod(Server):
		return b.Node(r) + "/" + string(r)
	}
	return b.Node(r) + "/pod"
}

// Levels of Pod Security admission, of which a namespace enforces one.
const (
	LevelPrivileged = "privileged"
	LevelRestricted = "restricted"
)

// NewNamespace is one of our own, for one experiment, with a level of Pod Security.
func NewNamespace(name, experiment, level string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			LabelManaged: ManagedBy, LabelExperiment: experiment, "pod-security.kubernetes.io/enforce": level,
		}},
	}
}

// AgentPath is where the agent's program is in the containers.
func (b Blueprint) AgentPath() string {
	if b.Settings.Inject {
		return InjectPath
	}
	return remote.AgentPath
}

// Service has the group's server as its only endpoint, with the one port of runs for both protocols.
func (b Blueprint) Service() *corev1.Service {
	port := func(protocol corev1.Protocol, name string) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: protocol, Port: int32(b.Settings.Port),
			TargetPort: intstr.FromInt32(int32(b.Settings.Port))}
	}
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: b.Name("svc"), Namespace: b.Namespace, Labels: b.Labels("")},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Selector: map[string]string{
				LabelExperiment: b.Experiment, LabelSite: strconv.Itoa(b.Site), LabelRole: string(Server),
			},
			Ports: []corev1.ServicePort{port(corev1.ProtocolTCP, "tcp"), port(corev1.ProtocolUDP, "udp")},
		},
	}
	if b.Settings.Family != "" {
		s.Spec.IPFamilies = []corev1.IPFamily{b.Settings.Family}
	}
	return s
}

// ends are what placements have in common that share pods: where client and server are, or what a client alone has.
type ends struct {
	clientPod, serverPod, apart  bool
	alone, hasVolume, asksServer bool
}

func endsOf(p targets.Placement) ends {
	if p.Path == "" {
		return ends{alone: true, hasVolume: p.Volume, asksServer: p.AsksAPI()}
	}
	return ends{clientPod: p.Path.ClientPod(), serverPod: p.Path.ServerPod(), apart: p.Path.Other()}
}

// Groups are placements by the pods that they share.
func Groups(placements []targets.Placement) [][]targets.Placement {
	var list [][]targets.Placement
	for _, p := range placements {
		i := slices.IndexFunc(list, func(g []targets.Placement) bool { return endsOf(g[0]) == endsOf(p) })
		if i < 0 {
			list = append(list, nil)
			i = len(list) - 1
		}
		list[i] = append(list[i], p)
	}
	return list
}
