//go:build linux

package main

import (
	"fmt"
	"path/filepath"
)

// Addresses of the cluster. None of them is routed to from anywhere but this machine.
const (
	hostAddr    = "10.199.0.1"  // this machine, on the link to the cluster
	controlAddr = "10.199.0.10" // the control plane
	apiService  = "10.96.0.1"
	serviceCIDR = "10.96.0.0/16"
	podCIDR     = "10.244.0.0/16"
	uplink      = "knotmeter-c" // the only thing in this machine's own network
	apiURL      = "https://" + controlAddr + ":6443"
	pauseImage  = "knotmeter.local/pause:1"
	cgroup      = "test-cluster" // not a name that `knotmeter clean` takes for one of its own
)

// networks are the pod networks, the default first.
func networks() []string {
	return []string{"native", "flannel-vxlan", "flannel-host-gw", "macvlan"}
}

// A spec is what a cluster is made from.
type spec struct {
	Dir     string // its state
	Bin     string // its programs
	Network string
	Nodes   int
}

// A node is one of the machines that the cluster thinks it has.
type node struct {
	Name string
	Addr string
	Pods string // of the pods' network
	Dir  string
}

func (s spec) nodes() []node {
	var list []node
	for i := 1; i <= s.Nodes; i++ {
		name := fmt.Sprintf("node-%d", i)
		list = append(list, node{
			Name: name, Addr: fmt.Sprintf("10.199.0.%d", 10+i), Pods: fmt.Sprintf("10.244.%d.0/24", i),
			Dir: filepath.Join(s.Dir, name),
		})
	}
	return list
}

func (n node) socket() string    { return filepath.Join(n.Dir, "containerd.sock") }
func (n node) namespace() string { return "/run/netns/" + n.Name }

func (s spec) program(name string) string { return filepath.Join(s.Bin, name) }
func (s spec) file(name string) string    { return filepath.Join(s.Dir, name) }
func (s spec) kubeconfig() string         { return s.file("kubeconfig") }
func (s spec) ready() string              { return s.file("ready") }
