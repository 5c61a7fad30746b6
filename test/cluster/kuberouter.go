//go:build linux

package main

import (
	"net/http"
	"strconv"
)

// kubeRouter is kube-router, in the fork that k3s maintains, which has all of its controllers. As a network it makes
// routes by BGP between the nodes and enforces NetworkPolicies; as a firewall it does that alone, on another network,
// as in k3s.
type kubeRouter struct {
	native
}

const (
	routerVersion = "v2.6.3-k3s1"
	routerHealth  = 20244
)

// routerProgram is kube-router, as a network or as a firewall.
var routerProgram = program{name: "kube-router", module: "kube-router",
	source: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}

func (kubeRouter) filters() bool { return true }
func (kubeRouter) ipv6() bool    { return false }

func (kubeRouter) programs() []program { return []program{routerProgram} }

func (kubeRouter) lacks() error {
	return installed(map[string]string{"ipset": "ipset", "iptables": "iptables"})
}

func (kubeRouter) files(s spec) map[string]any {
	return map[string]any{"kube-router.json": kubeList([]any{
		notScheduled("kube-router", "docker.io/cloudnativelabs/kube-router:"+routerVersion, s.routerFlags(true)...),
	})}
}

func (kubeRouter) apply(s spec) []command {
	return []command{s.kubectl("apply", "-f", s.file("kube-router.json"))}
}

func (kubeRouter) withdraw(s spec) []command {
	return []command{s.kubectl("delete", "--ignore-not-found", "-f", s.file("kube-router.json"))}
}

// routerFlags are those of kube-router, as a router too or as a firewall alone.
func (s spec) routerFlags(routes bool) []string {
	return []string{"--run-router=" + strconv.FormatBool(routes), "--run-firewall=true", "--run-service-proxy=false",
		"--enable-overlay=false", "--service-cluster-ip-range=" + s.services()}
}

// router is the process of a node.
func (s spec) router(n node, routes bool) process {
	args := append([]string{s.program(routerProgram.name), "--kubeconfig=" + s.kubeconfig(),
		"--hostname-override=" + n.Name, "--health-port=" + strconv.Itoa(routerHealth), "--metrics-port=0"},
		s.routerFlags(routes)...)
	return process{
		name:  n.Name + "-kube-router",
		env:   []string{"NODE_NAME=" + n.Name, "KUBE_ROUTER_CNI_CONF_FILE=" + s.conflistFile(n)},
		args:  n.apart(args...),
		ready: healthy(http.DefaultClient, "http://"+n.Addr+":"+strconv.Itoa(routerHealth)+"/healthz"),
	}
}

func (kubeRouter) node(s spec, n node) []process { return []process{s.router(n, true)} }

func (kubeRouter) config(s spec, n node) map[string]any {
	return s.conflist(map[string]any{
		"type": "bridge", "bridge": "kube-bridge", "isDefaultGateway": true, "hairpinMode": true,
		"ipam": hostLocal(n),
	}, portmap)
}
