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

// A PolicyEnd is one end of a site as NetworkPolicies see it.
type PolicyEnd struct {
	Name    string // client, server
	Labels  map[string]string
	Address netip.Addr
	Pod     bool // in a pod's network: policies are not about nodes
}

// A policyTraffic is what a policy has to allow.
type policyTraffic struct {
	namespace string
	peer      PolicyEnd
	protocol  corev1.Protocol
	port      int32
}

// BlockingPolicies says which NetworkPolicies of a namespace keep the client from the server, by the rules of
// https://kubernetes.io/docs/concepts/services-networking/network-policies/; or, if none does, where else to look. What
// the policies say of labels of the namespace that are unknown is taken to allow.
func BlockingPolicies(policies []networkingv1.NetworkPolicy, namespace string, ends [2]PolicyEnd, port int) string {
	var walls []string
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
			if by := refusing(policies, direction, of, policyTraffic{namespace, peer, protocol, int32(port)}); by != nil {
				protocols, names = append(protocols, string(protocol)), by
			}
		}
		if names != nil {
			walls = append(walls, fmt.Sprintf("the NetworkPolicies %s of the namespace %s select the %s's pod and allow it "+
				"no %s with the %s on %s port %d",
				inspection.List(names), namespace, of.Name, strings.ToLower(string(direction)), peer.Name,
				strings.Join(protocols, " and "), port))
		}
	}
	switch {
	case len(walls) > 0:
		return fmt.Sprintf("; %s: add a policy that allows traffic among pods with the label %s=%s, both ways, or give "+
			"another namespace=",
			strings.Join(walls, "; "), manifest.LabelManaged, manifest.ManagedBy)
	case len(policies) > 0:
		return fmt.Sprintf("; the NetworkPolicies of the namespace %s (%s) are not in the way%s", namespace,
			inspection.List(policyNames(policies)), FirewallHint(port))
	}
	return FirewallHint(port)
}

func FirewallHint(port int) string {
	return fmt.Sprintf("; look for policies of the whole cluster, and for firewalls between the nodes on port %d, TCP "+
		"and UDP", port)
}

func policyNames(policies []networkingv1.NetworkPolicy) []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}

// refusing are the policies that select a pod for a direction, if none of them allows the traffic; nil if one does, or
// there is none.
func refusing(
	policies []networkingv1.NetworkPolicy, direction networkingv1.PolicyType, of PolicyEnd, t policyTraffic,
) []string {
	var names []string
	for _, p := range policies {
		if !concerns(p.Spec, direction) || !matches(&p.Spec.PodSelector, of.Labels) {
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

// concerns says whether a policy is about a direction: without types, about ingress, and about egress if it has rules
// for it.
func concerns(p networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType) bool {
	if len(p.PolicyTypes) == 0 {
		return direction == networkingv1.PolicyTypeIngress || len(p.Egress) > 0
	}
	return slices.Contains(p.PolicyTypes, direction)
}

func allows(p networkingv1.NetworkPolicySpec, direction networkingv1.PolicyType, t policyTraffic) bool {
	if direction == networkingv1.PolicyTypeEgress {
		return slices.ContainsFunc(p.Egress, func(r networkingv1.NetworkPolicyEgressRule) bool {
			return t.to(r.Ports) && t.with(r.To)
		})
	}
	return slices.ContainsFunc(p.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return t.to(r.Ports) && t.with(r.From)
	})
}

// to says whether the ports of a rule include the run's. Ports with names are none of our pods'.
func (t policyTraffic) to(ports []networkingv1.NetworkPolicyPort) bool {
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

// with says whether the peers of a rule include the other end.
func (t policyTraffic) with(peers []networkingv1.NetworkPolicyPeer) bool {
	return len(peers) == 0 || slices.ContainsFunc(peers, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			return inBlock(p.IPBlock, t.peer.Address)
		}
		return t.peer.Pod && mayMatchNamespace(p.NamespaceSelector, t.namespace) &&
			(p.PodSelector == nil || matches(p.PodSelector, t.peer.Labels))
	})
}

func inBlock(b *networkingv1.IPBlock, a netip.Addr) bool {
	in := func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(a)
	}
	return in(b.CIDR) && !slices.ContainsFunc(b.Except, in)
}

func matches(s *metav1.LabelSelector, of map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(labels.Set(of))
}

// mayMatchNamespace says whether a selector can be about a namespace of which only the name is known.
func mayMatchNamespace(s *metav1.LabelSelector, namespace string) bool {
	if s == nil {
		return true // the policy's own
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
