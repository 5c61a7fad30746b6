package mesh

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Node describes a node to its proxy. It has no secrets.
type Node struct {
	Name     string         // of its identity
	Listen   netip.AddrPort // for other proxies; connections to them have this source address
	Redirect uint16         // port to which the node redirects its pods' connections, each at its own destination
	Serves   []netip.Prefix // its pods, and the Services whose endpoints they are
	Peers    []Peer
}

// A Peer is another node.
type Peer struct {
	Name   string
	Proxy  netip.AddrPort
	Serves []netip.Prefix // as in Node
}

// String describes the node in one line of a plan.
func (n Node) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "listen %s redirect :%d serves %s", n.Listen, n.Redirect, joined(n.Serves))
	for _, p := range n.Peers {
		fmt.Fprintf(&b, " peer %s at %s serves %s", p.Name, p.Proxy, joined(p.Serves))
	}
	return b.String()
}

// contains reports whether one of the networks has the address.
func contains(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
}

// joined returns the texts of a list, separated by commas.
func joined[T fmt.Stringer](list []T) string {
	var texts []string
	for _, one := range list {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, ",")
}
