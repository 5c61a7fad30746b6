//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// changeNetwork builds the programs of another network and orders the holder to change to it.
func changeNetwork(ctx context.Context, s spec, names []string) error {
	if len(names) != 1 {
		return errors.New("network: name one network")
	}
	s.Network = names[0]
	if err := s.checkNetwork(); err != nil {
		return err
	}
	if err := s.plugin().checkSupport(); err != nil {
		return fmt.Errorf("the network %s cannot be had here: %w", s.Network, err)
	}
	if err := build(ctx, s, s.programs()...); err != nil {
		return err
	}
	return s.ask("network", s.Network)
}

// changeNetwork stops all nodes, removes everything that their network made, and starts them with another network or
// the same. The nodes keep their images and volumes alone. After an error it can be called again.
func (p *parts) changeNetwork(ctx context.Context, network string) error {
	old, next := p.spec, p.spec
	next.Network = network
	if err := next.checkNetwork(); err != nil {
		return err
	}
	for _, n := range old.nodes() {
		if _, err := os.Stat(n.namespace()); errors.Is(err, os.ErrNotExist) {
			continue // an earlier order failed half way
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

// withdrawal returns the commands that remove the network's objects, all Nodes with its annotations, and the nodes'
// network namespaces with all links, routes and rules in them.
func (s spec) withdrawal() []command {
	list := append(s.plugin().withdraw(s), s.kubectl("delete", "node", "--all"))
	for _, n := range s.nodes() {
		list = append(list,
			command{"sh", "-c", `! ip link show "$0" >&2 || ip link delete "$0"`, n.Name},
			command{"sh", "-c", `! test -e "$0" || ip netns delete "$1"`, n.namespace(), n.Name})
	}
	return list
}

// resetNodes removes the files of networks on the nodes, and the cgroups that their programs may be attached to, as
// soon as the last process in them has ended.
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

// writeNetwork saves the spec with its network, and writes the network's files.
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
