//go:build linux

// Command cluster starts a real Kubernetes on one Linux machine, for end-to-end tests: etcd, a control
// plane, and nodes that are network namespaces, each with its own kubelet, containerd and kube-proxy.
//
// Everything lives below one process that is PID 1 of namespaces of its own: when it ends, in whatever
// way, the kernel ends every other process, and with them go the mounts and the networks. What is left
// then, a directory and empty cgroups, is removed by `cluster down`, after a crash too.
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

  up          build what is missing, start the cluster and wait until it is ready
  down        stop it and remove everything, after a crash too
  status      say what runs; exit status 1 if it is not ready
  kubeconfig  print the path of the administrator's kubeconfig
  kubectl     run kubectl with it
  load FILE   import an image archive (docker save) on every node
  build       only build the programs, into the user's cache directory

flags of up:  -network native|flannel-vxlan|flannel-host-gw|macvlan   -nodes 2   -dir DIR
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// run carries out a command. init and hold are what the command starts itself as.
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
		return load(ctx, s, rest)
	case "build":
		return build(ctx, s)
	case "init":
		return initialise(s)
	case "hold":
		return hold(ctx, s)
	}
	return fmt.Errorf("there is no command %q\n%s", args[0], usage)
}

// parse reads the flags; those of kubectl are left to it.
func parse(args []string) (spec, []string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return spec{}, nil, err
	}
	s := spec{Bin: filepath.Join(cache, "knotmeter", "cluster", version)}
	set := flag.NewFlagSet("cluster", flag.ContinueOnError)
	set.StringVar(&s.Dir, "dir", "/var/lib/knotmeter-cluster", "where the cluster's files are")
	set.StringVar(&s.Network, "network", networks()[0], "the pods' network: "+strings.Join(networks(), ", "))
	set.IntVar(&s.Nodes, "nodes", 2, "nodes, 1 to 9")
	if err := set.Parse(args); err != nil {
		return s, nil, err
	}
	switch {
	case !slices.Contains(networks(), s.Network):
		return s, nil, fmt.Errorf("-network: %q is not one of %s", s.Network, strings.Join(networks(), ", "))
	case s.Nodes < 1 || s.Nodes > 9:
		return s, nil, fmt.Errorf("-nodes: %d is not from 1 to 9", s.Nodes)
	}
	s.Dir, err = filepath.Abs(s.Dir)
	return s, set.Args(), err
}
