package diagnosis

import (
	"net/netip"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// TestBlockingPolicies checks that BlockingPolicies names policies that block the traffic, and no others.
func TestBlockingPolicies(t *testing.T) {
	ends := [2]PolicyEnd{
		{Name: "client", Labels: map[string]string{manifest.LabelManaged: manifest.ManagedBy, manifest.LabelRole: "client"},
			Address: netip.MustParseAddr("10.0.1.5"), Pod: true},
		{Name: "server", Labels: map[string]string{manifest.LabelManaged: manifest.ManagedBy, manifest.LabelRole: "server"},
			Address: netip.MustParseAddr("10.0.2.6"), Pod: true},
	}
	onNodes := ends
	onNodes[0].Pod = false
	const among = "ingress: [{from: [{podSelector: {matchLabels: {app.kubernetes.io/managed-by: knotmeter}}}]}]"
	for _, test := range []struct {
		name  string
		specs []string
		ends  [2]PolicyEnd
		says  []string
		not   string
	}{
		{"none", nil, ends, []string{"policies of the whole cluster", "port 5201"}, "select"},
		{"deny all", []string{"policyTypes: [Ingress, Egress]"}, ends, []string{"select the client's pod and allow it no " +
			"egress with the server on TCP and UDP port 5201", "select the server's pod and allow it no ingress", "p0",
			manifest.LabelManaged}, "whole cluster"},
		{"deny ingress", []string{"ingress: []"}, ends, []string{"server's pod", "no ingress"}, "egress"},
		{"no types, egress rules", []string{"{ingress: [{}], egress: [{ports: [{port: 53, protocol: UDP}]}]}"}, ends,
			[]string{"no egress"}, "no ingress"},
		{"others", []string{"podSelector: {matchLabels: {app: web}}"}, ends,
			[]string{"(p0) are not in the way", "whole cluster"}, "select"},
		{"deny, and allow ours", []string{"ingress: []", among}, ends, []string{"(p0, p1) are not in the way"}, "select the"},
		{"only TCP", []string{"ingress: [{ports: [{port: 5201}]}]"}, ends, []string{"no ingress with the client on UDP " +
			"port 5201"}, "TCP and"},
		{"range of ports", []string{"ingress: [{ports: [{port: 5000, endPort: 6000}, {protocol: UDP}]}]"}, ends,
			[]string{"not in the way"}, "select"},
		{"another port", []string{"ingress: [{ports: [{port: 80}, {port: web}, {port: 80, protocol: UDP}]}]"}, ends,
			[]string{"no ingress"}, "egress"},
		{"addresses", []string{"ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]"}, ends, []string{"not in the way"},
			"select"},
		{"addresses but ours", []string{"ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.1.0/24]}}]}]"}, ends,
			[]string{"no ingress"}, "egress"},
		{"another namespace", []string{"ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: " +
			"other}}}]}]"}, ends, []string{"no ingress"}, "egress"},
		{"a label of the namespace", []string{"ingress: [{from: [{namespaceSelector: {matchLabels: {team: a}}}]}]"}, ends,
			[]string{"not in the way"}, "select"},
		{"from a node", []string{"{policyTypes: [Ingress, Egress], " + among + "}"}, onNodes,
			[]string{"server's pod", "no ingress"}, "egress"},
	} {
		var policies []networkingv1.NetworkPolicy
		for i, text := range test.specs {
			var p networkingv1.NetworkPolicy
			if err := yaml.UnmarshalStrict([]byte(text), &p.Spec); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			p.Name = "p" + string(rune('0'+i))
			policies = append(policies, p)
		}
		got := BlockingPolicies(policies, "bench", test.ends, 5201)
		for _, words := range test.says {
			if !strings.Contains(got, words) {
				t.Errorf("%s: %q does not say %q", test.name, got, words)
			}
		}
		if strings.Contains(got, test.not) {
			t.Errorf("%s: %q says %q", test.name, got, test.not)
		}
	}
}
