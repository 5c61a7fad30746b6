//go:build linux

package datapath

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/lab/netns"
	"github.com/knotmeter/knotmeter/internal/result"
)

// podsBridge is the bridge of a node whose ports are the node's pods.
const podsBridge = "pods"

// addPodBridge adds a node's bridge with the gateway's address. Pods of one node reach each other through it without
// routing. With services=nftables, bridged packets pass the node's netfilter hooks, as kube-proxy requires, so that the
// replies of an endpoint on the client's node pass its address translation too.
func addPodBridge(p *lab.Plan, t lab.Topology, n int) {
	node := lab.Node(n)
	p.Add(node, lab.Bridge{Name: podsBridge, MTU: p.PodMTU, MAC: lab.PodMAC(n, 0)}, lab.Up(podsBridge))
	addAddresses(p, node, podsBridge, 1, lab.Gateway(n).Prefix(24, 64))
	if t.Services == "nftables" {
		p.Add(node, bridgeNetfilter{true})
		p.Need(result.PodSvcSame, shownBridge{bridgeNetfilter{true}})
	}
}

// A bridgeNetfilter sets whether bridged packets pass the namespace's netfilter hooks. By default the kernel passes
// them, where br_netfilter is loaded; elsewhere nothing does and there is nothing to set.
type bridgeNetfilter struct{ shown bool }

func (o bridgeNetfilter) value() string {
	if o.shown {
		return "1"
	}
	return "0"
}

func (o bridgeNetfilter) String() string {
	return fmt.Sprintf("sysctl net.bridge.bridge-nf-call-iptables=%s net.bridge.bridge-nf-call-ip6tables=%[1]s "+
		"where there is br_netfilter", o.value())
}

func (o bridgeNetfilter) Apply(*lab.Env) error {
	for _, name := range []string{bridgeSysctl, "net.bridge.bridge-nf-call-ip6tables"} {
		if err := netns.WriteSysctl(name, o.value()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// bridgeSysctl exists where br_netfilter is loaded.
const bridgeSysctl = "net.bridge.bridge-nf-call-iptables"

// A shownBridge is the need for bridged packets that pass the netfilter hooks. It is no step of a plan: only one path
// needs br_netfilter.
type shownBridge struct{ bridgeNetfilter }

func (shownBridge) Feature() string { return "br_netfilter" }

func (shownBridge) Probe(*lab.Env) error {
	_, err := netns.ReadSysctl(bridgeSysctl)
	if errors.Is(err, fs.ErrNotExist) {
		return result.NotSupported("this kernel has no br_netfilter (CONFIG_BRIDGE_NETFILTER), " +
			"so the answers of an endpoint on the client's node pass by the address translation")
	}
	return err
}
