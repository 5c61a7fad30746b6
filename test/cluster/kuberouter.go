//go:build linux

package main

import (
	"net/http"
	"strconv"
)

// kubeRouter runs kube-router as the network: it exchanges routes between the nodes by BGP and enforces
// NetworkPolicies. As the firewall of another network, as in k3s, it only enforces NetworkPolicies. It is built from
// k3s's fork, which contains all controllers of kube-router.
type kubeRouter struct {
	native
}

const (
	routerVersion = "v2.6.3-k3s1"
	routerHealth  = 20244
)

// routerProgram is kube-router, for both uses.
var routerProgram = program{name: "kube-router", module: "kube-router",
	source: "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}

func (kubeRouter) filters() bool { return true }
func (kubeRouter) ipv6() bool    { return false }

func (kubeRouter) programs() []program { return []program{routerProgram} }

func (kubeRouter) checkSupport() error {
	return requirePrograms(map[string]string{"ipset": "ipset", "iptables": "iptables"})
}

func (kubeRouter) files(s spec) map[string]any {
	return map[string]any{"kube-router.json": kubeList([]any{
		unscheduledDaemonSet("kube-router", "docker.io/cloudnativelabs/kube-router:"+routerVersion, s.routerFlags(true)...),
	})}
}

func (kubeRouter) apply(s spec) []command {
	return []command{s.kubectl("apply", "-f", s.file("kube-router.json"))}
}

func (kubeRouter) withdraw(s spec) []command {
	return []command{s.kubectl("delete", "--ignore-not-found", "-f", s.file("kube-router.json"))}
}

// routerFlags returns the flags of kube-router: as a router and firewall if routes, else as a firewall alone.
func (s spec) routerFlags(routes bool) []string {
	return []string{"--run-router=" + strconv.FormatBool(routes), "--run-firewall=true", "--run-service-proxy=false",
		"--enable-overlay=false", "--service-cluster-ip-range=" + s.services()}
}

// router returns kube-router as a process of a node.
func (s spec) router(n node, routes bool) process {
	args := append([]string{s.program(routerProgram.name), "--kubeconfig=" + s.kubeconfig(),
		"--hostname-override=" + n.Name, "--health-port=" + strconv.Itoa(routerHealth), "--metrics-port=0"},
		s.routerFlags(routes)...)
	return process{
		name:  n.Name + "-kube-router",
		env:   []string{"NODE_NAME=" + n.Name, "KUBE_ROUTER_CNI_CONF_FILE=" + s.conflistFile(n)},
		args:  n.insideWithMounts(args...),
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
