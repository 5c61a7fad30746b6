//go:build linux

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// specOf returns a cluster of three nodes, whose ID shows in its addresses.
func specOf(network string, ipv6 bool) spec {
	return spec{ID: 3, Dir: "/state", Bin: "/programs", Network: network, Nodes: 3, IPv6: ipv6, Zones: []string{"a", "b"}}
}

func TestGolden(t *testing.T) {
	for _, network := range networks {
		for _, ipv6 := range []bool{false, true} {
			if ipv6 && !specOf(network, true).plugin().ipv6() {
				continue // parse refuses it
			}
			name := network + "-4"
			if ipv6 {
				name += "6"
			}
			t.Run(name, func(t *testing.T) { golden(t, name+".txt", blueprint(t, specOf(network, ipv6))) })
		}
	}
}

// blueprint returns all commands, processes and files that follow from a spec.
func blueprint(t *testing.T, s spec) string {
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, "\n# %s\n", name) }
	lines := func(list ...command) {
		for _, c := range list {
			fmt.Fprintln(&b, strings.Join(c, " "))
		}
	}
	object := func(v any) {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	processes := func(list ...process) {
		for _, p := range list {
			fmt.Fprintf(&b, "%s: %s\n", p.name, strings.Join(append(slices.Clone(p.env), p.args...), "\n  "))
		}
	}
	section("this machine")
	lines(s.uplinks(4711)...)
	section("links")
	lines(s.links()...)
	section("control plane")
	processes(s.controlPlane()...)
	processes(s.plugin().control(s)...)
	lines(s.plugin().apply(s)...)
	section("before another network")
	lines(s.withdrawal()...)
	n := s.nodes()[1]
	section("processes of a node")
	processes(s.nodeProcesses(n)...)
	section("CNI")
	switch p := s.plugin().(type) {
	case flannel:
		object(p.leased(s, n, lease{Network: s.pods4(), Network6: s.pods6(), MTU: 1450, Masquerade: true}))
	case calico:
		object(p.conflist(s, n))
	default:
		object(p.config(s, n))
	}
	if s.Network == "native" {
		section("links of nodes with rates")
		rated := s
		rated.Rates = []string{"1gbit", "950mbit"}
		for _, n := range rated.nodes() {
			lines(rated.nodeLinks(n)...)
		}
		section("CNI with Multus")
		object(s.multusConfig(n, map[string]any{"name": "the one above"}))
		object(s.attachmentConfig(n))
		object([]any{attachmentDefinition(), s.attachmentObjects()})
	}
	section("Node")
	object(nodeObject(n))
	section("kubelet")
	object(s.kubeletConfig(n))
	section("containerd")
	b.WriteString(s.containerdConfig(n))
	section("users")
	for _, file := range slices.Sorted(maps.Keys(s.users())) {
		fmt.Fprintln(&b, file, s.users()[file])
	}
	section("storage classes")
	object(storageClasses())
	if files := s.plugin().files(s); files != nil {
		section("files of the network")
		object(files)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// golden compares with a file in testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s:%d:\n got %s\nwant %s", file, i+1, g[i], w[i])
		}
	}
	t.Fatalf("%s has %d lines, not %d", file, len(w), len(g))
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the golden files")
	m.Run()
}
