//go:build linux

package datapath

import (
	"errors"
	"io/fs"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
)

// podsBridge is the bridge that a node's pods are ports of.
const podsBridge = "pods"

// podBridge makes a node's bridge with the gateway's address. Pods of one node reach each other through it without
// routing. So that the answer of a Service's endpoint on the client's node passes the node's address translation
// too, bridged packets are shown to it, as kube-proxy requires.
func podBridge(p *lab.Plan, t lab.Topology, n int) {
	node := lab.Node(n)
	p.Add(node, lab.Bridge{Name: podsBridge, MTU: p.PodMTU, MAC: lab.PodMAC(n, 0)}, lab.Up(podsBridge))
	addresses(p, node, podsBridge, 1, lab.Gateway(n).Prefix(24, 64))
	if t.Services == "nftables" {
		p.Add(node, bridgeNetfilter{})
		p.Need(target.PodSvcSame, bridgeNetfilter{})
	}
}

// bridgeNetfilter shows bridged packets to the node's netfilter hooks.
type bridgeNetfilter struct{}

func (bridgeNetfilter) String() string {
	return "sysctl net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1 where there is br_netfilter"
}

// Apply sets it, where the kernel can; where not, the one path that needs it is not supported.
func (o bridgeNetfilter) Apply(e *lab.Env) error {
	if err := o.Probe(e); !errors.Is(err, result.ErrNotSupported) {
		return err
	}
	return nil
}

func (bridgeNetfilter) Feature() string { return "br_netfilter" }

func (bridgeNetfilter) Probe(*lab.Env) error {
	for _, name := range []string{"net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"} {
		err := netns.Sysctl(name, "1")
		if errors.Is(err, fs.ErrNotExist) {
			return result.NotSupported("this kernel has no br_netfilter (CONFIG_BRIDGE_NETFILTER), " +
				"so the answers of an endpoint on the client's node pass by the address translation")
		}
		if err != nil {
			return err
		}
	}
	return nil
}
