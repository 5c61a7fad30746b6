package diagnosis

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/knotmeter/knotmeter/internal/targets/kube/inspection"
	"github.com/knotmeter/knotmeter/internal/targets/kube/manifest"
)

// A PolicyEnd is one end of a site as far as NetworkPolicies consider it.
type PolicyEnd struct {
	Name    string // client, server
	Labels  map[string]string
	Address netip.Addr
	Pod     bool // it has a pod's network; policies do not apply to the host network
}

// A policyTraffic is traffic between an end and its peer that policies have to allow.
type policyTraffic struct {
	namespace string
	peer      PolicyEnd
	protocol  corev1.Protocol
	port      int32
}

// BlockingPolicies describes which NetworkPolicies of a namespace block traffic from the client to the server, by the
// rules of https://kubernetes.io/docs/concepts/services-networking/network-policies/. If none does, it names other
// possible causes. The labels of the namespace are unknown, so every selector of namespaces is assumed to match, except
// by name.
func BlockingPolicies(policies []networkingv1.NetworkPolicy, namespace string, ends [2]PolicyEnd, port int) string {
	var findings []string
	for _, direction := range []networkingv1.PolicyType{networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress} {
		of, peer := ends[0], ends[1]
		if direction == networkingv1.PolicyTypeIngress {
			of, peer = peer, of
		}
		if !of.Pod {
			continue
		}
		var protocols, names []string
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			traffic := policyTraffic{namespace, peer, protocol, int32(port)}
			if refusing := refusingPolicies(policies, direction, of, traffic); refusing != nil {
				protocols, names = append(protocols, string(protocol)), refusing
			}
		}
		if names != nil {
			findings = append(findings, fmt.Sprintf("the NetworkPolicies %s of the namespace %s select the %s's pod and "+
				"allow it no %s with the %s on %s port %d",
				inspection.List(names), namespace, of.Name, strings.ToLower(string(direction)), peer.Name,
				strings.Join(protocols, " and "), port))
		}
	}
	switch {
	case len(findings) > 0:
		return fmt.Sprintf("; %s: add a policy that allows traffic among pods with the label %s=%s, both ways, or give "+
			"another namespace=",
			strings.Join(findings, "; "), manifest.LabelManaged, manifest.ManagedBy)
	case len(policies) > 0:
		return fmt.Sprintf("; the NetworkPolicies of the namespace %s (%s) are not in the way%s", namespace,
			inspection.List(policyNames(policies)), FirewallHint(port))
	}
	return FirewallHint(port)
}

// FirewallHint names other possible causes of blocked traffic: cluster-wide policies and firewalls.
func FirewallHint(port int) string {
	return fmt.Sprintf("; look for policies of the whole cluster, and for firewalls between the nodes on port %d, TCP "+
		"and UDP", port)
}

// policyNames returns the names of policies, sorted.
func policyNames(policies []networkingv1.NetworkPolicy) []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// refusingPolicies returns the names of the policies that select a pod for a direction, if none of them allows the
// traffic; nil if one does, or there is none.
func refusingPolicies(
	policies []networkingv1.NetworkPolicy, direction networkingv1.PolicyType, of PolicyEnd, t policyTraffic,
) []string {
	var names []string
	for _, p := range policies {
		if !appliesTo(p.Spec, direction) || !matches(&p.Spec.PodSelector, of.Labels) {
			continue
		}
		if allows(p.Spec, direction, t) {
			return nil
		}
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// appliesTo reports whether a policy applies to a direction. A policy without types applies to ingress, and to egress
// if it has rules for egress.
func appliesTo(p networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType) bool {
	if len(p.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(p.Egress) > 0
	}
	return slices.Contains(p.PolicyTypes, direction)
}

// allows reports whether a rule of the policy allows the traffic.
func allows(p networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType, t policyTraffic) bool {
	if direction == networkingv1.PolicyTypeEgress {
		return slices.ContainsFunc(p.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return t.includesPort(r.Ports) && t.includesPeer(r.To)
		})
	}
	return slices.ContainsFunc(p.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return t.includesPort(r.Ports) && t.includesPeer(r.From)
	})
}

// includesPort reports whether the ports of a rule include the run's port. Named ports never do, because the pods name
// none.
func (t policyTraffic) includesPort(ports []networkingv1.NetworkPolicyPort) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		if protocol != t.protocol {
			return false
		}
		if p.Port == nil {
			return true
		}
		first, last := p.Port.IntVal, p.Port.IntVal
		if p.EndPort != nil {
			last = *p.EndPort
		}
		return first != 0 && first <= t.port && t.port <= last
	})
}

// includesPeer reports whether the peers of a rule include the other end.
func (t policyTraffic) includesPeer(peers []networkingv1.NetworkPolicyPeer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return inBlock(p.IPBlock, t.peer.Address)
		}
		return t.peer.Pod && mayMatchNamespace(p.NamespaceSelector, t.namespace) &&
			(p.PodSelector == nil || matches(p.PodSelector, t.peer.Labels))
	})
}

// inBlock reports whether an address is in an IP block.
func inBlock(b *networkingv1.IPBlock, a netip.Addr) bool {
	in := func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(a)
	}
	return in(b.CIDR) && !slices.ContainsFunc(b.Except, in)
}

// matches reports whether a selector matches labels.
func matches(s *metav1.LabelSelector, set map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(set))
}

// mayMatchNamespace reports whether a selector can match a namespace of which only the name is known. A nil selector
// matches.
func mayMatchNamespace(s *metav1.LabelSelector, namespace string) bool {
	if s == nil {
		return true // the policy's own namespace
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false
	}
	requirements, _ := selector.Requirements()
	own := labels.Set{corev1.LabelMetadataName: namespace}
	for _, r := range requirements {
		if r.Key() == corev1.LabelMetadataName && !r.Matches(own) {
			return false
		}
	}
	return true
}
