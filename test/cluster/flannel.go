//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// flannel runs flannel, built from its own packages, with a backend.
type flannel struct {
	native
	backend string
}

func (flannel) programs() []program {
	return []program{{name: "flannel", module: "flannel", source: "."}}
}

func (flannel) users() map[string][]string { return map[string][]string{"flannel.conf": {"flannel"}} }

func (f flannel) files(s spec) map[string]any {
	return map[string]any{"net-conf.json": f.netConf(s), "flannel.json": kubeList(f.objects(s))}
}

func (flannel) apply(s spec) []command {
	return []command{s.kubectl("apply", "-f", s.file("flannel.json"))}
}

func (flannel) withdraw(s spec) []command {
	return []command{s.kubectl("delete", "--ignore-not-found", "-f", s.file("flannel.json"))}
}

// netConf returns flannel's own configuration.
func (f flannel) netConf(s spec) map[string]any {
	conf := map[string]any{"Network": s.pods4(), "EnableNFTables": false, "Backend": map[string]any{"Type": f.backend}}
	if s.IPv6 {
		conf["EnableIPv6"], conf["IPv6Network"] = true, s.pods6()
	}
	return conf
}

// objects returns the objects of flannel's manifest without the daemon set: here flannel runs on the nodes without
// pods, with a user in place of the service account.
func (f flannel) objects(s spec) []any {
	conf, _ := json.MarshalIndent(f.netConf(s), "", "  ") // strings and booleans always encode
	const rbac = "rbac.authorization.k8s.io"
	labels := map[string]any{"k8s-app": "flannel", "tier": "node", "app": "flannel"}
	rule := func(resource string, verbs ...string) map[string]any {
		return map[string]any{"apiGroups": []string{""}, "resources": []string{resource}, "verbs": verbs}
	}
	return []any{
		map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-flannel", "labels": labels},
		},
		map[string]any{
			"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "flannel", "labels": labels},
			"rules": []any{rule("nodes", "get", "list", "watch"), rule("nodes/status", "patch")},
		},
		map[string]any{
			"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding",
			"metadata": map[string]any{"name": "flannel", "labels": labels},
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": "flannel"},
			"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": "flannel"}},
		},
		map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "kube-flannel-cfg", "namespace": "kube-flannel", "labels": labels},
			"data":     map[string]any{"net-conf.json": string(conf)},
		},
	}
}

func (f flannel) node(s spec, n node) []process {
	return []process{{
		name: n.Name + "-flannel", env: []string{"NODE_NAME=" + n.Name},
		args: n.inside(s.program("flannel"), "-kubeconfig="+s.file("flannel.conf"), "-net-config="+s.file("net-conf.json"),
			"-subnet-file="+n.file("subnet.env"), "-iface=eth0", "-ip-masq"),
		ready: func(ctx context.Context) error { return f.awaitLease(ctx, s, n) },
	}}
}

// config returns nil: awaitLease writes the configuration.
func (flannel) config(spec, node) map[string]any { return nil }

// leased returns the configuration that the flannel plugin derives from the lease for the plugin that it delegates to.
func (flannel) leased(s spec, n node, l lease) map[string]any {
	return s.conflist(map[string]any{
		"type": "bridge", "bridge": "cni0", "mtu": l.MTU, "ipMasq": !l.Masquerade,
		"hairpinMode": true, "isGateway": true, "isDefaultGateway": true,
		"ipam": hostLocal(n, l.Network, l.Network6),
	}, portmap)
}

// A lease is a node's part of the network, as flannel reports it.
type lease struct {
	Network, Network6 string
	MTU               int
	Masquerade        bool // flannel masquerades, so the plugin must not
}

// parseLease parses a subnet.env. It returns an error without a network or an MTU.
func parseLease(text string) (lease, error) {
	var l lease
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		var err error
		switch key {
		case "FLANNEL_NETWORK":
			l.Network = value
		case "FLANNEL_IPV6_NETWORK":
			l.Network6 = value
		case "FLANNEL_MTU":
			l.MTU, err = strconv.Atoi(value)
		case "FLANNEL_IPMASQ":
			l.Masquerade, err = strconv.ParseBool(value)
		}
		if err != nil {
			return l, fmt.Errorf("%s: %w", key, err)
		}
	}
	if l.Network == "" || l.MTU == 0 {
		return l, errors.New("it names no network, or no MTU")
	}
	return l, lines.Err()
}

// awaitLease waits at most 1 minute until flannel has a lease of the node, and writes the CNI configuration from it.
func (f flannel) awaitLease(ctx context.Context, s spec, n node) error {
	file := n.file("subnet.env")
	return await(ctx, file, time.Minute, func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		l, err := parseLease(string(text))
		if err != nil {
			return err
		}
		return s.writeCNI(n, f.leased(s, n, l))
	})
}
