//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxID    = 9
	maxNodes = 9
)

// networks are the pod networks, the default first.
var networks = []string{"native", "flannel-vxlan", "flannel-host-gw", "macvlan", "calico-vxlan", "calico-direct",
	"cilium-vxlan", "cilium-vxlan-wireguard", "cilium-geneve", "cilium-native", "cilium-native-wireguard",
	"cilium-native-kpr", "kube-router"}

// refused are networks that cannot be made of what there is, and why.
var refused = map[string]string{
	"calico-ipip": "it takes Calico's own fork of BIRD, which is no Go module and no Debian package",
	"calico-bgp":  "it takes Calico's own fork of BIRD, which is no Go module and no Debian package",
	"calico-ebpf": "it takes libbpf of version 1.3 and Calico's eBPF programs, which are not in its Go module",
}

// A spec is what a cluster is made from. What is not in it follows from it.
type spec struct {
	ID      int    // distinguishes clusters on one machine
	Dir     string // its state
	Bin     string // its programs
	Network string
	Nodes   int
	IPv6    bool     // besides IPv4
	Zones   []string // of the nodes, in turn
	Rates   []string // of the nodes' links, in turn, as tc(8) has rates; empty: unlimited
	Multus  bool     // pods can ask for a further network, and for another default one
	Filter  bool     // kube-router enforces NetworkPolicies, on a network that does not
	PodCPUs string   // that pods may run on, as cpuset(7) has lists; empty: all
}

// A node is one of the machines that the cluster thinks it has.
type node struct {
	Name        string
	Index       int    // from 1
	Addr, Addr6 string // the second is empty without IPv6, as below
	Pods, Pods6 string // of the pods' network
	Zone        string // may be empty
	Rate        string // of its link, likewise
	Dir         string // its files
}

// defaultDir is where a cluster's files are.
func defaultDir(id int) string { return "/var/lib/knotmeter-cluster" + suffix(id) }

// suffix distinguishes names of clusters; the first needs none.
func suffix(id int) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("-%d", id)
}

// Addresses of the cluster. None of them is routed to from anywhere but this machine. The network of the nodes has
// this machine at 1, the control plane at 10 and the nodes after it.

// host is this machine, on the link to the cluster.
func (s spec) host() string { return fmt.Sprintf("10.199.%d.1", s.ID) }

func (s spec) control() string    { return fmt.Sprintf("10.199.%d.10", s.ID) }
func (s spec) control6() string   { return s.only6(fmt.Sprintf("fd00:10:199:%d::10", s.ID)) }
func (s spec) apiService() string { return fmt.Sprintf("10.%d.0.1", 96+s.ID) }
func (s spec) services4() string  { return fmt.Sprintf("10.%d.0.0/16", 96+s.ID) }
func (s spec) services() string {
	return s.both(s.services4(), fmt.Sprintf("fd00:10:96:%d::/112", s.ID))
}
func (s spec) pods4() string { return fmt.Sprintf("10.%d.0.0/16", 244+s.ID) }
func (s spec) pods6() string { return s.only6(fmt.Sprintf("fd00:10:244:%x::/56", s.ID<<8)) }
func (s spec) pods() string  { return s.both(s.pods4(), s.pods6()) }
func (s spec) api() string   { return "https://" + s.control() + ":6443" }

// Names outside the cluster's own directory and namespaces.

// uplink is the only thing in this machine's own network.
func (s spec) uplink() string { return "knotmeter-c" + suffix(s.ID) }

// cgroup is not a name that `knotmeter clean` takes for one of its own.
func (s spec) cgroup() string { return "test-cluster" + suffix(s.ID) }

// context is the cluster's name in its kubeconfig.
func (s spec) context() string { return "knotmeter-test" + suffix(s.ID) }

// only6 is an IPv6 address if the cluster has such.
func (s spec) only6(address string) string {
	if !s.IPv6 {
		return ""
	}
	return address
}

// both are the addresses that the cluster has of the two, as Kubernetes lists them.
func (s spec) both(v4, v6 string) string { return strings.Join(nonEmpty(v4, s.only6(v6)), ",") }

func nonEmpty(list ...string) []string {
	var kept []string
	for _, text := range list {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

func (s spec) nodes() []node {
	var list []node
	for i := 1; i <= s.Nodes; i++ {
		n := node{
			Name: fmt.Sprintf("node-%d", i), Index: i,
			Addr: fmt.Sprintf("10.199.%d.%d", s.ID, 10+i), Addr6: s.only6(fmt.Sprintf("fd00:10:199:%d::%d", s.ID, 10+i)),
			Pods: fmt.Sprintf("10.%d.%d.0/24", 244+s.ID, i), Pods6: s.only6(fmt.Sprintf("fd00:10:244:%x::/64", s.ID<<8|i)),
		}
		n.Dir = s.file(n.Name)
		if len(s.Zones) > 0 {
			n.Zone = s.Zones[(i-1)%len(s.Zones)]
		}
		if len(s.Rates) > 0 {
			n.Rate = s.Rates[(i-1)%len(s.Rates)]
		}
		list = append(list, n)
	}
	return list
}

func (n node) file(name string) string { return filepath.Join(n.Dir, name) }
func (n node) socket() string          { return n.file("containerd.sock") }
func (n node) namespace() string       { return "/run/netns/" + n.Name }
func (n node) unified(s spec) string {
	return filepath.Join("/sys/fs/cgroup/unified", s.cgroup(), n.Name)
}
func (n node) addrs() []string    { return nonEmpty(n.Addr, n.Addr6) }
func (n node) podCIDRs() []string { return nonEmpty(n.Pods, n.Pods6) }

func (s spec) program(name string) string { return filepath.Join(s.Bin, name) }
func (s spec) image(name string) string   { return s.program(name + ".tar") }
func (s spec) file(name string) string    { return filepath.Join(s.Dir, name) }
func (s spec) kubeconfig() string         { return s.file("kubeconfig") }
func (s spec) ready() string              { return s.file("ready") }
func (s spec) orders() string             { return s.file("orders.sock") } // where the holder takes them

// save writes the spec into the cluster's directory, for the commands that follow.
func (s spec) save() error { return writeJSON(s.file("spec.json"), s) }

// saved is the spec of the cluster that is in the directory; this one if there is none.
func (s spec) saved() (spec, error) {
	text, err := os.ReadFile(s.file("spec.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	found := spec{}
	if err := json.Unmarshal(text, &found); err != nil {
		return s, fmt.Errorf("%s: %w", s.file("spec.json"), err)
	}
	return found, nil
}
