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

// cilium is Cilium's own agent, operator and CNI plugin. The agent compiles its eBPF programs when it starts.
type cilium struct {
	native
	mode string
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

// tunnel is the protocol between nodes; empty for routes.
func (c cilium) tunnel() string {
	if kind, _, _ := strings.Cut(c.mode, "-"); kind != "native" {
		return kind
	}
	return ""
}

// encrypts says that traffic between nodes is encrypted.
func (c cilium) encrypts() bool { return strings.HasSuffix(c.mode, "-wireguard") }

func (c cilium) lacks() error {
	for link, needed := range map[string]bool{"geneve external": c.tunnel() == "geneve", "wireguard": c.encrypts()} {
		if !needed {
			continue
		}
		if err := linkType(link); err != nil {
			return err
		}
	}
	if unified, err := unifiedCgroups(); err != nil || len(unified) == 0 {
		return errors.Join(lacking("cgroups of version 2 at /sys/fs/cgroup/unified, beside those of version 1"), err)
	}
	return installed(map[string]string{clang: clang, "iptables": "iptables"})
}

// clang is the version of Debian's that Cilium's programs take.
const clang = "clang-19"

// replacesProxy says that kube-proxy does not run.
func (c cilium) replacesProxy() bool { return c.mode == "native-kpr" }

// settings are those of the agent, and what the config map says that clusters have them in.
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
		notScheduled("cilium", "quay.io/cilium/cilium:"+ciliumVersion),
		map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "cilium-config", "namespace": "kube-system"}, "data": c.settings(s),
		},
	})}
}

func (cilium) apply(s spec) []command {
	return []command{s.kubectl("apply", "-f", s.file("cilium.json"))}
}

// withdraw removes the kinds too that the operator made.
func (cilium) withdraw(s spec) []command {
	return []command{
		s.kubectl("delete", "--ignore-not-found", "-f", s.file("cilium.json")),
		s.kubectl("delete", "customresourcedefinitions", "-l", "io.cilium.k8s.crd.schema.version"),
	}
}

// control is the operator, which makes the kinds that the agents need. It ends when it cannot renew its lease, which on
// a machine with many pods to start may take longer than its 10 s. Its shell would listen on the machine itself.
func (cilium) control(s spec) []process {
	return []process{{name: "cilium-operator", args: command{s.program("cilium-operator"),
		"--k8s-kubeconfig-path=" + s.kubeconfig(), "--ipam=kubernetes", "--identity-allocation-mode=crd",
		"--operator-api-serve-addr=127.0.0.1:9234", "--enable-metrics=false", "--shell-sock-path=",
		"--leader-election-lease-duration=60s", "--leader-election-renew-deadline=50s",
	}}}
}

// socket is where the agent takes the plugin's requests.
func (cilium) socket(n node) string { return n.file("cilium/cilium.sock") }

// runtime is what the plugin finds in the environment that the container runtime hands on.
func (c cilium) runtime(n node) []string { return []string{"CILIUM_SOCK=" + c.socket(n)} }

// node gives the agent the directories that are a machine's own, and a root of cgroups that ends with the node:
// programs at the machine's own would see the connections of the whole machine.
func (c cilium) node(s spec, n node) []process {
	script := `mkdir -p "$1" /run/cilium /var/lib/cilium && mount --bind "$1" /run/cilium &&
mkdir -p /run/cilium/cgroupv2 && mount --bind "$2" /run/cilium/cgroupv2 &&
mount -t tmpfs tmpfs /var/lib/cilium && mkdir /var/lib/cilium/bpf /var/lib/cilium/bin &&
mount --bind "$3" /var/lib/cilium/bpf && mount -t bpf bpf /sys/fs/bpf &&
ln -s "$(command -v ` + clang + `)" /var/lib/cilium/bin/clang && PATH=/var/lib/cilium/bin:$PATH && shift 3 && exec "$@"`
	args := n.apart("sh", "-c", script, "sh", n.file("cilium"), n.unified(s), s.program("cilium-bpf"),
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

// config comes when the agent is ready.
func (cilium) config(spec, node) map[string]any { return nil }

// brief asks the agent for its state in short, which is an error while it is not ready.
type brief struct{ http.RoundTripper }

func (b brief) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Brief", "true")
	return b.RoundTripper.RoundTrip(r)
}
