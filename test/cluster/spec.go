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

// refused holds the networks that Go modules and Debian packages do not suffice for, each with the reason.
var refused = map[string]string{
	"calico-ipip": "it takes Calico's own fork of BIRD, which is no Go module and no Debian package",
	"calico-bgp":  "it takes Calico's own fork of BIRD, which is no Go module and no Debian package",
	"calico-ebpf": "it takes libbpf of version 1.3 and Calico's eBPF programs, which are not in its Go module",
}

// A spec holds the settings of a cluster. Everything else about it is computed from them.
type spec struct {
	ID      int    // distinguishes clusters on one machine
	Dir     string // directory of its files and state
	Bin     string // directory of its programs
	Network string
	Nodes   int
	IPv6    bool     // in addition to IPv4
	Zones   []string // of the nodes, assigned in turn
	Rates   []string // of the nodes' links, assigned in turn, in the syntax of tc(8); empty: unlimited
	Multus  bool     // offer pods an additional network, and another default network
	Filter  bool     // let kube-router enforce NetworkPolicies, on a network that does not
	PodCPUs string   // CPUs that pods may run on, a list of cpuset(7); empty: all
}

// A node is one Kubernetes node: a network namespace with its own kubelet and containerd.
type node struct {
	Name        string
	Index       int    // from 1
	Addr, Addr6 string // Addr6 is empty without IPv6
	Pods, Pods6 string // its part of the pods' network; Pods6 is empty without IPv6
	Zone        string // may be empty
	Rate        string // of its link; may be empty
	Dir         string // directory of its files
}

// defaultDir returns the default directory of a cluster's files.
func defaultDir(id int) string { return "/var/lib/knotmeter-cluster" + suffix(id) }

// suffix returns the end of names that distinguishes clusters: empty for the first, -ID for the others.
func suffix(id int) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("-%d", id)
}

// The addresses of the cluster are reachable from this machine alone. In the network of the nodes, this machine is 1,
// the control plane 10, and the nodes follow.

// host returns the address of this machine on the link to the cluster.
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

// uplink returns the name of the link to the cluster, its only object in this machine's own network.
func (s spec) uplink() string { return "knotmeter-c" + suffix(s.ID) }

// cgroup returns the name of the cluster's cgroup, which `knotmeter clean` must not take for one of Knotmeter's.
func (s spec) cgroup() string { return "test-cluster" + suffix(s.ID) }

// context returns the cluster's name in its kubeconfig.
func (s spec) context() string { return "knotmeter-test" + suffix(s.ID) }

// only6 returns the address if the cluster has IPv6, else the empty string.
func (s spec) only6(address string) string {
	if !s.IPv6 {
		return ""
	}
	return address
}

// both returns the addresses of the IP families that the cluster has, separated by commas.
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
func (s spec) orders() string             { return s.file("orders.sock") } // socket on which the holder accepts orders

// save writes the spec into the cluster's directory, for later commands.
func (s spec) save() error { return writeJSON(s.file("spec.json"), s) }

// saved returns the spec that the cluster in the directory was started with; s itself if there is none.
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
