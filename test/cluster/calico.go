//go:build linux

package main

import (
	"context"
	"net/http"
	"strconv"
)

// calico runs Calico's own calico-node and CNI plugins. Felix, a part of calico-node, makes the routes between nodes.
type calico struct {
	native
	mode string // vxlan, or direct: routes, since the nodes share a subnet
}

const calicoModule = "github.com/projectcalico/calico"

func (calico) filters() bool { return true }
func (calico) ipv6() bool    { return false }

func (calico) programs() []program {
	return []program{
		{name: "calico-node", module: "calico", source: calicoModule + "/node/cmd/calico-node"},
		{name: "calico", module: "calico", source: calicoModule + "/cni-plugin/cmd/calico"},
		{name: "calico-ipam", module: "calico", source: calicoModule + "/cni-plugin/cmd/calico"},
		{name: "calico-crd", module: "calico", source: calicoModule, files: "libcalico-go/config/crd"},
	}
}

func (calico) checkSupport() error {
	return requirePrograms(map[string]string{"ipset": "ipset", "iptables": "iptables"})
}

func (c calico) files(s spec) map[string]any {
	return map[string]any{"calico.json": kubeList([]any{
		unscheduledDaemonSet("calico-node", "docker.io/calico/node:"+calicoVersion),
	})}
}

const calicoVersion = "v3.31.0"

func (calico) apply(s spec) []command {
	crd := s.program("calico-crd")
	return []command{
		s.kubectl("apply", "-f", crd),
		s.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", crd),
		s.kubectl("apply", "-f", s.file("calico.json")),
	}
}

func (calico) withdraw(s spec) []command {
	return []command{
		s.kubectl("delete", "--ignore-not-found", "-f", s.file("calico.json")),
		s.kubectl("delete", "--ignore-not-found", "-f", s.program("calico-crd")),
	}
}

// mtu returns the MTU of the pods' devices.
func (c calico) mtu() int {
	if c.mode == "vxlan" {
		return 1450
	}
	return 1500
}

// encapsulate returns when the pool encapsulates packets, in Calico's words.
func (c calico) encapsulate() string {
	if c.mode == "vxlan" {
		return "Always"
	}
	return "CrossSubnet"
}

// node returns a process that registers the node with Calico, once for each start, and then runs Felix.
func (c calico) node(s spec, n node) []process {
	script := `mkdir -p /var/lib/calico /run/calico && mount -t tmpfs tmpfs /var/lib/calico &&
mount -t tmpfs tmpfs /run/calico && "$0" -startup &&
"$0" -allocate-tunnel-addrs -allocate-tunnel-addrs-run-once && exec "$0" -felix`
	return []process{{
		name: n.Name + "-calico",
		env: []string{
			"DATASTORE_TYPE=kubernetes", "KUBECONFIG=" + s.kubeconfig(), "NODENAME=" + n.Name, "IP=" + n.Addr,
			"WAIT_FOR_DATASTORE=true", "CALICO_MANAGE_CNI=false", "CALICO_NETWORKING_BACKEND=vxlan", "CLUSTER_TYPE=k8s",
			"CALICO_IPV4POOL_CIDR=" + s.pods4(), "CALICO_IPV4POOL_VXLAN=" + c.encapsulate(), "CALICO_IPV4POOL_IPIP=Never",
			"FELIX_FELIXHOSTNAME=" + n.Name, "FELIX_IPV6SUPPORT=false", "FELIX_DEFAULTENDPOINTTOHOSTACTION=ACCEPT",
			"FELIX_HEALTHENABLED=true", "FELIX_HEALTHHOST=" + n.Addr, "FELIX_HEALTHPORT=" + strconv.Itoa(felixHealth),
			"FELIX_USAGEREPORTINGENABLED=false", // otherwise it sends statistics to its vendor
			"FELIX_LOGFILEPATH=none", "FELIX_LOGSEVERITYSYS=none",
			// Both need cgo, without which Felix panics.
			"FELIX_DebugSkipCTLBCleanup=true", "FELIX_XDPENABLED=false",
		},
		args: n.insideWithMounts("sh", "-c", script, s.program("calico-node")),
		ready: func(ctx context.Context) error {
			url := "http://" + n.Addr + ":" + strconv.Itoa(felixHealth) + "/readiness"
			if err := healthy(http.DefaultClient, url)(ctx); err != nil {
				return err
			}
			return s.writeCNI(n, c.conflist(s, n))
		},
	}}
}

const felixHealth = 9099

// config returns nil: the process of the node writes the configuration when Felix is ready.
func (calico) config(spec, node) map[string]any { return nil }

func (c calico) conflist(s spec, n node) map[string]any {
	return s.conflist(map[string]any{
		"type": "calico", "datastore_type": "kubernetes", "nodename": n.Name, "nodename_file_optional": true,
		"log_level": "warning", "mtu": c.mtu(), "ipam": map[string]any{"type": "calico-ipam"},
		"policy": map[string]any{"type": "k8s"}, "kubernetes": map[string]any{"kubeconfig": s.kubeconfig()},
	}, portmap)
}
