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
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// A Blueprint describes a group of pods: a client and, for network paths, a server.
type Blueprint struct {
	Settings   Settings
	Namespace  string
	Experiment string                  // random ID of this target in this process
	Site       int                     // number of the group in the experiment
	Placements []targets.Placement     // those that share the group, all with the same ends; at least one
	Nodes      [2]string               // of client and server
	Archs      [2]string               // of these nodes; empty if unknown
	Account    string                  // service account whose token the client has; empty: none
	Owners     []metav1.OwnerReference // the pods are deleted with these objects
	Reuse      bool                    // one volume serves all blocks
}

// Labels returns the labels of an object of the group; r is empty for the Service.
func (b Blueprint) Labels(r Role) map[string]string {
	l := map[string]string{
		LabelManaged: ManagedBy, LabelName: AgentName, LabelExperiment: b.Experiment, LabelSite: strconv.Itoa(b.Site),
	}
	if r != "" {
		l[LabelRole] = string(r)
	}
	return l
}

// Selector returns the label selector of the group's objects.
func (b Blueprint) Selector() string {
	return labels.Set{LabelExperiment: b.Experiment, LabelSite: strconv.Itoa(b.Site)}.String()
}

// Name returns the name of the pod of a role, or of the Service if r is "svc".
func (b Blueprint) Name(r Role) string {
	return fmt.Sprintf("knotmeter-%s-%d-%s", b.Experiment, b.Site, r)
}

// Paths returns the distinct paths of the placements; for a group without a server, only the empty path.
func (b Blueprint) Paths() []result.Path {
	var paths []result.Path
	for _, p := range b.Placements {
		if !slices.Contains(paths, p.Path) {
			paths = append(paths, p.Path)
		}
	}
	return paths
}

// path returns the first path; all of them have the same ends.
func (b Blueprint) path() result.Path { return b.Placements[0].Path }

// HasVolume reports whether the client has a volume.
func (b Blueprint) HasVolume() bool { return b.Placements[0].Volume }

// AsksAPI reports whether the client sends requests to the API server.
func (b Blueprint) AsksAPI() bool { return b.Placements[0].AsksAPI }

// OnTwoNodes reports whether client and server are on different nodes.
func (b Blueprint) OnTwoNodes() bool { return b.path().Other() }

// ClientOnly reports whether the group has no server.
func (b Blueprint) ClientOnly() bool { return b.path() == "" }

// Profiles reports whether the pods profile their nodes; only those of network paths do.
func (b Blueprint) Profiles() bool { return b.Settings.Profile && !b.ClientOnly() }

// Roles returns the roles of the group's pods.
func (b Blueprint) Roles() []Role {
	if b.ClientOnly() {
		return []Role{Client}
	}
	return []Role{Client, Server}
}

// InPod reports whether a pod has its own network namespace, not its node's.
func (b Blueprint) InPod(r Role) bool {
	if r == Client {
		return b.path().ClientPod() || b.ClientOnly()
	}
	return b.path().ServerPod()
}

// UsesService reports whether a path leads through the Service.
func (b Blueprint) UsesService() bool { return slices.ContainsFunc(b.Paths(), result.Path.Service) }

// Node returns the node of a pod.
func (b Blueprint) Node(r Role) string {
	if r == Client {
		return b.Nodes[0]
	}
	return b.Nodes[1]
}

// HostName returns the name of a host: the node, and for a pod also its role if both ends are pods, or else "pod".
func (b Blueprint) HostName(r Role) string {
	switch {
	case !b.InPod(r):
		return b.Node(r)
	case b.InPod(Client) && b.InPod(Server):
		return b.Node(r) + "/" + string(r)
	}
	return b.Node(r) + "/pod"
}

// Levels of Pod Security admission that a namespace enforces.
const (
	LevelPrivileged = "privileged"
	LevelRestricted = "restricted"
)

// podSecurityEnforce is the label of a namespace with the level of Pod Security that it enforces.
const podSecurityEnforce = "pod-security.kubernetes.io/enforce"

// NewNamespace returns the namespace of an experiment, with a level of Pod Security and the user's labels.
func NewNamespace(name, experiment, level string, given map[string]string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: joinMaps(given, map[string]string{
			LabelManaged: ManagedBy, LabelExperiment: experiment, podSecurityEnforce: level,
		})},
	}
}

// AgentPath returns the path of the agent's program in the containers.
func (b Blueprint) AgentPath() string {
	if b.Settings.Inject {
		return InjectPath
	}
	return remote.AgentPath
}

// Service returns the Service whose only endpoint is the group's server, with the port of runs for TCP and UDP.
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

// groupKey holds what placements that share pods have in common: where client and server are, or what a single client
// uses.
type groupKey struct {
	clientPod, serverPod, twoNodes bool
	clientOnly, hasVolume, asksAPI bool
}

// groupKeyOf returns the key of a placement.
func groupKeyOf(p targets.Placement) groupKey {
	if p.Path == "" {
		return groupKey{clientOnly: true, hasVolume: p.Volume, asksAPI: p.AsksAPI}
	}
	return groupKey{clientPod: p.Path.ClientPod(), serverPod: p.Path.ServerPod(), twoNodes: p.Path.Other()}
}

// Groups groups placements with the same ends, which share pods, in the order of their first placements.
func Groups(placements []targets.Placement) [][]targets.Placement {
	var list [][]targets.Placement
	for _, p := range placements {
		i := slices.IndexFunc(list, func(g []targets.Placement) bool { return groupKeyOf(g[0]) == groupKeyOf(p) })
		if i < 0 {
			list = append(list, nil)
			i = len(list) - 1
		}
		list[i] = append(list[i], p)
	}
	return list
}
