//go:build linux

// Command cluster starts a real Kubernetes on one Linux machine, for end-to-end tests: etcd, a control
// plane, and nodes that are network namespaces, each with its own kubelet, containerd and kube-proxy.
//
// Everything lives below one process that is PID 1 of namespaces of its own: when it ends, in whatever
// way, the kernel ends every other process, and with them go the mounts and the networks. What is left
// then, a directory, empty cgroups and loop devices, is removed by `cluster down`, after a crash too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const usage = `usage: cluster COMMAND [flags]

  up            build what is missing, start the cluster and wait until it is ready
  down          stop it and remove everything, after a crash too
  status        show the nodes; exit status 1 if the cluster is not ready
  kubeconfig    print the path of the administrator's kubeconfig
  kubectl       run kubectl with it
  load FILE     import an image archive (docker save) on every node
  stop PART     kill a part, as a fault does: node-2, kube-apiserver, node-2-kubelet, node-2-link, ...
  start PART    start it again and wait until it is ready
  restart PART  both
  throttle NAME -iops N -bps SIZE   limit the device of a volume or claim (-n NAMESPACE) for all pods; -off ends it
  network NAME  give a running cluster another network, or reinstall the same one; its nodes restart
  build         only build the programs of a cluster with these flags, into the user's cache directory
  left FILE     write the machine's state into the file; if the file exists, fail if the machine has more
  vault         build a real Vault there, and print the paths of the program and of its image

flags of all:  -id 0     number of the cluster, 0 to 9: several can run in parallel
               -dir DIR  directory of its files; default /var/lib/knotmeter-cluster, or ...-ID
flags of up:   -network native|flannel-vxlan|flannel-host-gw|macvlan|calico-vxlan|calico-direct|cilium-vxlan|
               cilium-native|cilium-native-kpr|kube-router   -firewall   -nodes 2   -ip 4|46   -zones a,b   -multus
               -rates 1gbit,950mbit   -pod-cpus 0
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run carries out the command that args name.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("name a command\n" + usage)
	}
	s, rest, err := parse(args[1:])
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		return up(ctx, s)
	case "build":
		return build(ctx, s, s.programs()...)
	case "vault":
		return buildVault(ctx, s)
	case "left":
		return checkLeft(ctx, s, rest)
	}
	if s, err = s.saved(); err != nil {
		return err
	}
	switch args[0] {
	case "down":
		return down(s)
	case "status":
		return status(s)
	case "kubeconfig":
		fmt.Println(s.kubeconfig())
		return nil
	case "kubectl":
		return kubectl(s, rest)
	case "load":
		return load(s, rest)
	case "stop", "start", "restart":
		return ask(s, args[0], rest)
	case "throttle":
		return throttle(s, rest)
	case "network":
		return changeNetwork(ctx, s, rest)
	case asInit:
		return initialise(s)
	case asHolder:
		return hold(ctx, s)
	}
	return fmt.Errorf("there is no command %q\n%s", args[0], usage)
}

// Commands by which this program starts itself: as PID 1 of a cluster's namespaces, and as the parent of its processes.
const (
	asInit   = "init"
	asHolder = "hold"
)

// parse reads the flags, and returns the arguments after them.
func parse(args []string) (spec, []string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return spec{}, nil, err
	}
	s := spec{Bin: filepath.Join(cache, "knotmeter", "cluster", version)}
	var families, zones, rates string
	set := flag.NewFlagSet("cluster", flag.ContinueOnError)
	set.IntVar(&s.ID, "id", 0, "number of the cluster, 0 to 9")
	set.StringVar(&s.Dir, "dir", "", "directory of the cluster's files")
	set.StringVar(&s.Network, "network", networks[0], "the pods' network: "+strings.Join(networks, ", "))
	set.IntVar(&s.Nodes, "nodes", 2, "nodes, 1 to 9")
	set.StringVar(&families, "ip", "4", "4, or 46 for IPv6 too")
	set.StringVar(&zones, "zones", "", "zones of the nodes, in turn, separated by commas")
	set.StringVar(&rates, "rates", "", "rates of the nodes' links, such as 1gbit,950mbit, in turn")
	set.BoolVar(&s.Filter, "firewall", false, "let kube-router enforce NetworkPolicies, as in k3s")
	set.BoolVar(&s.Multus, "multus", false, "offer pods the Multus networks default/"+attachment+
		" in addition to their own and default/"+defaultAttachment+" in its place")
	set.StringVar(&s.PodCPUs, "pod-cpus", "", "CPUs that pods may run on, such as 0 or 2-3,6")
	if err := set.Parse(args); err != nil {
		return s, nil, err
	}
	s.IPv6 = families == "46"
	switch {
	case s.ID < 0 || s.ID > maxID:
		return s, nil, fmt.Errorf("-id: %d is not from 0 to %d", s.ID, maxID)
	case s.Nodes < 1 || s.Nodes > maxNodes:
		return s, nil, fmt.Errorf("-nodes: %d is not from 1 to %d", s.Nodes, maxNodes)
	case families != "4" && families != "46":
		return s, nil, fmt.Errorf("-ip: %q is neither 4 nor 46", families)
	}
	if err := s.checkNetwork(); err != nil {
		return s, nil, err
	}
	if zones != "" {
		s.Zones = strings.Split(zones, ",")
	}
	if rates != "" {
		s.Rates = strings.Split(rates, ",")
	}
	if s.Dir == "" {
		s.Dir = defaultDir(s.ID)
	}
	s.Dir, err = filepath.Abs(s.Dir)
	return s, set.Args(), err
}

// checkNetwork returns an error if the settings do not allow the network.
func (s spec) checkNetwork() error {
	switch {
	case refused[s.Network] != "":
		return fmt.Errorf("-network: %s cannot be had: %s", s.Network, refused[s.Network])
	case !slices.Contains(networks, s.Network):
		return fmt.Errorf("-network: %q is not one of %s", s.Network, strings.Join(networks, ", "))
	case s.Multus && s.Network == attachment:
		return errors.New("-multus: pods are in the macvlan network already, by -network")
	case s.IPv6 && !s.plugin().ipv6():
		return fmt.Errorf("-ip: the network %s has IPv4 only here", s.Network)
	case s.Filter && s.plugin().filters():
		return fmt.Errorf("-firewall: the network %s enforces NetworkPolicies itself", s.Network)
	}
	return nil
}
