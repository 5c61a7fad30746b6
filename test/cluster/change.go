//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// changeNetwork gives a cluster that runs another network, with what it takes built first.
func changeNetwork(ctx context.Context, s spec, names []string) error {
	if len(names) != 1 {
		return errors.New("network: name one network")
	}
	s.Network = names[0]
	if err := s.checkNetwork(); err != nil {
		return err
	}
	if err := s.plugin().lacks(); err != nil {
		return fmt.Errorf("the network %s cannot be had here: %w", s.Network, err)
	}
	if err := build(ctx, s, s.programs()...); err != nil {
		return err
	}
	return s.ask("network", s.Network)
}

// changeNetwork stops all nodes, removes what the network of before made, and starts them with another one, as machines
// that are set up anew but for the images that they have. The same network is installed anew. After an error it can be
// asked again.
func (p *parts) changeNetwork(ctx context.Context, network string) error {
	old, next := p.spec, p.spec
	next.Network = network
	if err := next.checkNetwork(); err != nil {
		return err
	}
	for _, n := range old.nodes() {
		if _, err := os.Stat(n.namespace()); errors.Is(err, os.ErrNotExist) {
			continue // an order before this one ended half way
		}
		if err := p.stopPart(part{name: n.Name, processes: old.nodeProcesses(n), node: &n}); err != nil {
			return err
		}
	}
	var names []string
	for _, process := range old.plugin().control(old) {
		names = append(names, process.name)
	}
	if err := errors.Join(p.kill(names), runAll(old.withdrawal()), old.resetNodes(ctx)); err != nil {
		return err
	}
	p.mu.Lock()
	p.spec = next
	p.mu.Unlock()
	if err := next.writeNetwork(); err != nil {
		return err
	}
	if err := runAll(next.nodesLinks()); err != nil {
		return err
	}
	if err := next.registerNodes(); err != nil {
		return err
	}
	if err := p.startNetwork(ctx); err != nil {
		return err
	}
	since := nextSecond()
	for _, n := range next.nodes() {
		if err := p.startNode(ctx, n); err != nil {
			return err
		}
	}
	for _, n := range next.nodes() {
		if err := next.awaitNode(ctx, n, since); err != nil {
			return err
		}
	}
	return nil
}

// withdrawal are the commands that remove a network from the cluster's objects, and the nodes with what it noted there,
// and the networks of the nodes with all links, routes and rules in them.
func (s spec) withdrawal() []command {
	list := append(s.plugin().withdraw(s), s.kubectl("delete", "node", "--all"))
	for _, n := range s.nodes() {
		list = append(list,
			command{"sh", "-c", `! ip link show "$0" >&2 || ip link delete "$0"`, n.Name},
			command{"sh", "-c", `! test -e "$0" || ip netns delete "$1"`, n.namespace(), n.Name})
	}
	return list
}

// resetNodes removes what networks keep in the files of nodes, and the cgroups that programs of theirs may be attached
// to, as soon as the last process in them is gone.
func (s spec) resetNodes(ctx context.Context) error {
	errs := []error{os.RemoveAll(s.sharedIPAM())}
	for _, n := range s.nodes() {
		for _, name := range []string{"cni", "ipam", "multus", "cilium", "subnet.env"} {
			errs = append(errs, os.RemoveAll(n.file(name)))
		}
		errs = append(errs, await(ctx, "the end of the cgroup of "+n.Name, 30*time.Second, func() error {
			if err := removeCgroup(n.unified(s)); !errors.Is(err, os.ErrNotExist) {
				return err
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// writeNetwork writes the files of a network, and that it is the cluster's.
func (s spec) writeNetwork() error {
	if err := s.save(); err != nil {
		return err
	}
	for name, content := range s.plugin().files(s) {
		if err := writeJSON(s.file(name), content); err != nil {
			return err
		}
	}
	for _, n := range s.nodes() {
		if err := s.writeNode(n); err != nil {
			return err
		}
	}
	return nil
}
