//go:build linux

package main

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
)

// cilium runs Cilium's own agent, operator and CNI plugin. The agent compiles its eBPF programs when it starts.
type cilium struct {
	native
	mode string // vxlan, geneve or native, with -wireguard or -kpr
}

const (
	ciliumModule  = "github.com/cilium/cilium"
	ciliumVersion = "v1.19.3"
)

func (cilium) filters() bool { return true }
func (cilium) ipv6() bool    { return false }

func (cilium) programs() []program {
	return []program{
		{name: "cilium-agent", module: "cilium", source: ciliumModule + "/daemon"},
		{name: "cilium-cni", module: "cilium", source: ciliumModule + "/plugins/cilium-cni"},
		{name: "cilium-operator", module: "cilium", source: ciliumModule + "/operator", tags: "ipam_provider_operator"},
		{name: "cilium-bpf", module: "cilium", source: ciliumModule, files: "bpf"},
	}
}

// tunnel returns the tunnel protocol between nodes; empty for routes.
func (c cilium) tunnel() string {
	if kind, _, _ := strings.Cut(c.mode, "-"); kind != "native" {
		return kind
	}
	return ""
}

// encrypts reports whether traffic between nodes is encrypted.
func (c cilium) encrypts() bool { return strings.HasSuffix(c.mode, "-wireguard") }

func (c cilium) checkSupport() error {
	for link, needed := range map[string]bool{"geneve external": c.tunnel() == "geneve", "wireguard": c.encrypts()} {
		if !needed {
			continue
		}
		if err := checkLinkType(link); err != nil {
			return err
		}
	}
	if unified, err := unifiedCgroups(); err != nil || len(unified) == 0 {
		return errors.Join(missingError("cgroups of version 2 at /sys/fs/cgroup/unified, beside those of version 1"), err)
	}
	return requirePrograms(map[string]string{clang: clang, "iptables": "iptables"})
}

// clang is the version of clang, by its Debian package, that compiles Cilium's programs.
const clang = "clang-19"

// replacesProxy reports whether Cilium replaces kube-proxy.
func (c cilium) replacesProxy() bool { return c.mode == "native-kpr" }

// settings returns the settings of the agent, which are its flags and the config map's data.
func (c cilium) settings(s spec) map[string]string {
	list := map[string]string{
		"identity-allocation-mode": "crd", "ipam": "kubernetes", "k8s-require-ipv4-pod-cidr": "true",
		"enable-ipv6": "false", "enable-l7-proxy": "false", "enable-hubble": "false", "enable-health-checking": "false",
		"enable-endpoint-health-checking": "false", "preallocate-bpf-maps": "false", "devices": "eth0",
		"cni-exclusive": "false", "write-cni-conf-when-ready": "", "cluster-name": "default",
		"routing-mode": "native", "kube-proxy-replacement": "false",
	}
	if c.tunnel() != "" {
		maps.Copy(list, map[string]string{"routing-mode": "tunnel", "tunnel-protocol": c.tunnel()})
	} else {
		maps.Copy(list, map[string]string{"ipv4-native-routing-cidr": s.pods4(), "auto-direct-node-routes": "true"})
	}
	if c.replacesProxy() {
		maps.Copy(list, map[string]string{"kube-proxy-replacement": "true", "enable-bpf-masquerade": "true"})
	}
	if c.encrypts() {
		list["enable-wireguard"] = "true"
	}
	return list
}

func (c cilium) files(s spec) map[string]any {
	return map[string]any{"cilium.json": kubeList([]any{
		unscheduledDaemonSet("cilium", "quay.io/cilium/cilium:"+ciliumVersion),
		map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "cilium-config", "namespace": "kube-system"}, "data": c.settings(s),
		},
	})}
}

func (cilium) apply(s spec) []command {
	return []command{s.kubectl("apply", "-f", s.file("cilium.json"))}
}

// withdraw removes the custom resource definitions too, which the operator made, and its lease, which would keep the
// next operator waiting for a minute.
func (cilium) withdraw(s spec) []command {
	return []command{
		s.kubectl("delete", "--ignore-not-found", "-f", s.file("cilium.json")),
		s.kubectl("delete", "customresourcedefinitions", "-l", "io.cilium.k8s.crd.schema.version"),
		s.kubectl("delete", "--ignore-not-found", "lease", "cilium-operator-resource-lock", "--namespace", "default"),
	}
}

// control returns the operator, which makes the custom resource definitions of the agents. It ends if it cannot renew
// its lease in time; on a busy machine the default of 10 s is too short. Its shell is off: it would listen on the
// machine itself.
func (cilium) control(s spec) []process {
	return []process{{name: "cilium-operator", args: command{s.program("cilium-operator"),
		"--k8s-kubeconfig-path=" + s.kubeconfig(), "--ipam=kubernetes", "--identity-allocation-mode=crd",
		"--operator-api-serve-addr=127.0.0.1:9234", "--enable-metrics=false", "--shell-sock-path=",
		"--leader-election-lease-duration=60s", "--leader-election-renew-deadline=50s",
	}}}
}

// socket returns the path of the socket on which the agent takes the plugin's requests.
func (cilium) socket(n node) string { return n.file("cilium/cilium.sock") }

// runtime returns the variable by which the CNI plugin finds the agent.
func (c cilium) runtime(n node) []string { return []string{"CILIUM_SOCK=" + c.socket(n)} }

// node returns the agent with its own copies of a machine's directories, and with the node's cgroup as the root:
// programs attached to the machine's root would see the connections of the whole machine.
func (c cilium) node(s spec, n node) []process {
	script := `mkdir -p "$1" /run/cilium /var/lib/cilium && mount --bind "$1" /run/cilium &&
mkdir -p /run/cilium/cgroupv2 && mount --bind "$2" /run/cilium/cgroupv2 &&
mount -t tmpfs tmpfs /var/lib/cilium && mkdir /var/lib/cilium/bpf /var/lib/cilium/bin &&
mount --bind "$3" /var/lib/cilium/bpf && mount -t bpf bpf /sys/fs/bpf &&
ln -s "$(command -v ` + clang + `)" /var/lib/cilium/bin/clang && PATH=/var/lib/cilium/bin:$PATH && shift 3 && exec "$@"`
	args := n.insideWithMounts("sh", "-c", script, "sh", n.file("cilium"), n.unified(s), s.program("cilium-bpf"),
		s.program("cilium-agent"), "--k8s-kubeconfig-path="+s.kubeconfig(), "--cgroup-root=/run/cilium/cgroupv2")
	settings := c.settings(s)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "--"+key+"="+settings[key])
	}
	return []process{{
		name: n.Name + "-cilium", env: []string{"K8S_NODE_NAME=" + n.Name}, args: args,
		ready: func(ctx context.Context) error {
			dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", c.socket(n))
			}
			client := &http.Client{Transport: brief{&http.Transport{DialContext: dial, DisableKeepAlives: true}}}
			if err := healthy(client, "http://cilium/v1/healthz")(ctx); err != nil {
				return err
			}
			return s.writeCNI(n, s.conflist(map[string]any{"type": "cilium-cni"}))
		},
	}}
}

// config returns nil: the process of the node writes the configuration when the agent is ready.
func (cilium) config(spec, node) map[string]any { return nil }

// A brief is a transport that asks the agent for its state in short. The response is an error while the agent is not
// ready.
type brief struct{ http.RoundTripper }

func (b brief) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Brief", "true")
	return b.RoundTripper.RoundTrip(r)
}
