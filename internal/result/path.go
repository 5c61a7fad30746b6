package result

import (
	"slices"
	"strings"
)

// A Path names the two ends of the traffic of a network case, and whether they are on the same node.
type Path string

// The nine paths: /same means that the other end is on the client's node, /other that it is on another.
const (
	NodeNode     Path = "node-node"
	PodNodeSame  Path = "pod-node/same"
	PodNodeOther Path = "pod-node/other"
	PodPodSame   Path = "pod-pod/same"
	PodPodOther  Path = "pod-pod/other"
	NodeSvcSame  Path = "node-svc/same"
	NodeSvcOther Path = "node-svc/other"
	PodSvcSame   Path = "pod-svc/same"
	PodSvcOther  Path = "pod-svc/other"
)

var paths = []Path{
	NodeNode, PodNodeSame, PodNodeOther, PodPodSame, PodPodOther, NodeSvcSame, NodeSvcOther, PodSvcSame, PodSvcOther,
}

// Paths returns the nine paths in the order of the documentation. The caller may change the list.
func Paths() []Path { return slices.Clone(paths) }

// Same reports whether the path stays on the client's node.
func (p Path) Same() bool { return strings.HasSuffix(string(p), "/same") }

// Other reports whether the path leaves the client's node.
func (p Path) Other() bool { return p == NodeNode || strings.HasSuffix(string(p), "/other") }

// Between returns the path with the same ends on two nodes.
func (p Path) Between() Path {
	if kind, is := strings.CutSuffix(string(p), "/same"); is {
		return Path(kind + "/other")
	}
	return p
}

// Service reports whether the client dials a Service instead of the server itself.
func (p Path) Service() bool { return strings.Contains(string(p), "-svc/") }

// ClientPod reports whether the client is in a pod.
func (p Path) ClientPod() bool { return strings.HasPrefix(string(p), "pod-") }

// ServerPod reports whether the server is in a pod.
func (p Path) ServerPod() bool { return p.Service() || strings.HasPrefix(string(p), "pod-pod/") }
