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
	p.Add(node, lab.Bridge(netns.Link{Name: podsBridge, MTU: p.PodMTU, MAC: lab.PodMAC(n, 0)}), lab.Up(podsBridge))
	addAddresses(p, node, podsBridge, 1, lab.Gateway(n).Prefix(24, 64))
	if t.Services == "nftables" {
		p.Add(node, bridgeNetfilter("1"))
		p.Need(result.PodSvcSame, lab.Op{Feature: "br_netfilter", Probe: probeBridgeNetfilter})
	}
}

// Settings that exist where br_netfilter is loaded.
const (
	bridgeSysctl  = "net.bridge.bridge-nf-call-iptables"
	bridgeSysctl6 = "net.bridge.bridge-nf-call-ip6tables"
)

// bridgeNetfilter returns an op that sets whether bridged packets pass the namespace's netfilter hooks (1) or not (0).
// By default the kernel passes them, where br_netfilter is loaded; elsewhere nothing does and there is nothing to set.
func bridgeNetfilter(value string) lab.Op {
	return lab.Op{
		Text: fmt.Sprintf("sysctl %s=%s %s=%[2]s where there is br_netfilter", bridgeSysctl, value, bridgeSysctl6),
		Apply: func(*lab.Env) error {
			for _, name := range []string{bridgeSysctl, bridgeSysctl6} {
				if err := netns.WriteSysctl(name, value); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		},
	}
}

// probeBridgeNetfilter checks whether bridged packets can pass the netfilter hooks. Only one path needs that, so it is
// no step of a plan.
func probeBridgeNetfilter(*lab.Env) error {
	_, err := netns.ReadSysctl(bridgeSysctl)
	if errors.Is(err, fs.ErrNotExist) {
		return result.NotSupported("this kernel has no br_netfilter (CONFIG_BRIDGE_NETFILTER), " +
			"so the replies of an endpoint on the client's node bypass the address translation")
	}
	return err
}
