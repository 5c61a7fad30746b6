//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// kubeconfigOf is a kubeconfig for a user with a certificate. JSON is YAML.
func kubeconfigOf(ca []byte, p pair) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "knotmeter-test",
		"clusters": []any{map[string]any{"name": "knotmeter-test", "cluster": map[string]any{"server": apiURL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "user", "user": map[string]any{"client-certificate-data": p.Cert, "client-key-data": p.Key}}},
		"contexts": []any{map[string]any{"name": "knotmeter-test", "context": map[string]any{"cluster": "knotmeter-test", "user": "user"}}},
	}
}

// kubeletConfig is the configuration of a node's kubelet.
func (s spec) kubeletConfig(n node) map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"x509":      map[string]any{"clientCAFile": s.file("ca.crt")},
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + n.socket(),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + cgroup + "/" + n.Name, "failCgroupV1": false,
		"enforceNodeAllocatable": []string{"pods"},
		"failSwapOn":             false, "oomScoreAdj": 0, "resolvConf": "",
		"address": n.Addr, "healthzBindAddress": n.Addr, "podLogsDir": filepath.Join(n.Dir, "logs"),
		"volumePluginDir":             filepath.Join(n.Dir, "plugins"),
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"evictionHard":              map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		"nodeStatusUpdateFrequency": "5s", "nodeStatusReportFrequency": "10s",
		"shutdownGracePeriod": "0s", "registerNode": true, "maxPods": 100,
	}
}

// containerdConfig is the configuration of a node's containerd. The machine may not let scores of the
// out-of-memory killer be lowered, hence the restriction.
func (s spec) containerdConfig(n node) string {
	return fmt.Sprintf(`version = 3
root = %q
state = %q
oom_score = 0

[grpc]
address = %q

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
enable_selinux = false
disable_apparmor = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%q]
conf_dir = %q

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %q
`, filepath.Join(n.Dir, "containerd"), filepath.Join(n.Dir, "state"), n.socket(), s.Bin, filepath.Join(n.Dir, "cni"), pauseImage)
}

// nodeObject is the Node as it is registered before its kubelet starts, so that its part of the pods'
// network is known beforehand.
func nodeObject(n node) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": n.Name, "labels": map[string]string{"kubernetes.io/hostname": n.Name}},
		"spec":     map[string]any{"podCIDR": n.Pods, "podCIDRs": []string{n.Pods}},
	}
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// writeFiles makes the certificates and every configuration file.
func (s spec) writeFiles() error {
	ca, root, err := newAuthority()
	if err != nil {
		return err
	}
	if err := root.write(s.file("ca")); err != nil {
		return err
	}
	server, err := ca.server("kube-apiserver", controlAddr, apiService, "127.0.0.1")
	if err != nil {
		return err
	}
	if err := server.write(s.file("apiserver")); err != nil {
		return err
	}
	// Signs service account tokens; any key pair does.
	accounts, err := ca.client("service-accounts")
	if err != nil {
		return err
	}
	if err := accounts.write(s.file("accounts")); err != nil {
		return err
	}
	kubelets, err := ca.client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	if err := kubelets.write(s.file("apiserver-kubelet")); err != nil {
		return err
	}
	users := map[string][]string{
		"kubeconfig": {"admin", "system:masters"}, "controller-manager.conf": {"system:kube-controller-manager"},
		"scheduler.conf": {"system:kube-scheduler"}, "proxy.conf": {"system:kube-proxy"},
	}
	for _, n := range s.nodes() {
		users[n.Name+".conf"] = []string{"system:node:" + n.Name, "system:nodes"}
	}
	for file, user := range users {
		p, err := ca.client(user[0], user[1:]...)
		if err != nil {
			return err
		}
		if err := writeJSON(s.file(file), kubeconfigOf(root.Cert, p)); err != nil {
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

func (s spec) writeNode(n node) error {
	for _, dir := range []string{"cni", "logs", "plugins", "ipam", "kubelet", "containerd", "state"} {
		if err := os.MkdirAll(filepath.Join(n.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := writeJSON(filepath.Join(n.Dir, "kubelet.json"), s.kubeletConfig(n)); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(n.Dir, "node.json"), nodeObject(n)); err != nil {
		return err
	}
	if c := s.cniConfig(n); c != nil {
		if err := writeJSON(filepath.Join(n.Dir, "cni", "10-"+s.Network+".conflist"), c); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(n.Dir, "containerd.toml"), []byte(s.containerdConfig(n)), 0o600)
}
