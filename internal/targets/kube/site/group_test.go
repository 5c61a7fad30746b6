package site

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestLocateDefaultNetwork checks that pods must have the network that replaces the default one. Pods in the network of
// their node have no network of Multus.
func TestLocateDefaultNetwork(t *testing.T) {
	for network, says := range map[string]string{
		"a/b": "", "a/c": "the default network of pod knotmeter-abc-7-client is a/b, not a/c",
	} {
		plan := manifest.Blueprint{
			Settings:  manifest.Settings{DefaultNetwork: network, Port: 5201},
			Namespace: "ns", Experiment: "abc", Site: 7, Nodes: [2]string{"node-1", "node-2"},
			Placements: []targets.Placement{{Path: result.PodNodeOther}},
		}
		g := &Group{Plan: plan, Pods: map[string]*corev1.Pod{}}
		for r, address := range map[manifest.Role]string{manifest.Client: "10.9.0.2", manifest.Server: "10.0.0.2"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: plan.Name(r)}}
			p.Spec.NodeName, p.Spec.HostNetwork = plan.Node(r), !plan.InPod(r)
			p.Status.PodIPs = []corev1.PodIP{{IP: address}}
			g.Pods[p.Name] = p
		}
		g.Pods[plan.Name(manifest.Client)].Annotations = map[string]string{
			"k8s.v1.cni.cncf.io/network-status": `[{"name":"a/b","ips":["10.9.0.2"],"default":true}]`,
		}
		err := g.checkPods()
		if says == "" && (err != nil || g.Listen.String() != "10.0.0.2:5201") || says != "" && (err == nil ||
			!strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, at %s", network, err, g.Listen)
		}
	}
}
