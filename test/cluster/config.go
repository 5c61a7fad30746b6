//go:build linux

package main

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
)

// kubeconfigOf returns a kubeconfig for a user with a certificate. It is written as JSON, which is YAML.
func (s spec) kubeconfigOf(ca []byte, p pair) map[string]any {
	name := s.context()
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []any{map[string]any{"name": name, "cluster": map[string]any{"server": s.api(),
			"certificate-authority-data": ca}}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{"client-certificate-data": p.Cert,
			"client-key-data": p.Key}}},
		"contexts": []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": name}}},
	}
}

// kubeletConfig returns the configuration of a node's kubelet.
func (s spec) kubeletConfig(n node) map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"x509":      map[string]any{"clientCAFile": s.file("ca.crt")},
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + n.socket(),
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + s.cgroup() + "/" + n.Name, "failCgroupV1": false,
		"enforceNodeAllocatable": []string{"pods"},
		"failSwapOn":             false, "oomScoreAdj": 0, "resolvConf": "",
		"address": n.Addr, "healthzBindAddress": n.Addr, "podLogsDir": n.file("logs"),
		"volumePluginDir":             n.file("plugins"),
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"evictionHard": map[string]string{"memory.available": "100Mi",
			"nodefs.available": "1%", "imagefs.available": "1%"},
		"nodeStatusUpdateFrequency": "5s", "nodeStatusReportFrequency": "10s",
		"shutdownGracePeriod": "0s", "registerNode": true, "maxPods": 100,
	}
}

// containerdConfig returns the configuration of a node's containerd. restrict_oom_score_adj is set because the machine
// may forbid lower scores. Devices belong to their pod's user, because nodes have no group disk. NRI is off: its socket
// has one fixed path, which the nodes of all clusters would share.
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
device_ownership_from_security_context = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%q]
conf_dir = %q

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %q

[plugins.'io.containerd.nri.v1.nri']
disable = true
`, n.file("containerd"), n.file("state"), n.socket(), s.Bin, n.file("cni"), pauseImage)
}

// nodeObject returns the Node as it is registered before its kubelet starts, with its addresses and its part of the
// pods' network.
func nodeObject(n node) map[string]any {
	var addresses []any
	for _, a := range n.addrs() {
		addresses = append(addresses, map[string]any{"type": "InternalIP", "address": a})
	}
	labels := map[string]string{"kubernetes.io/hostname": n.Name}
	if n.Zone != "" {
		labels["topology.kubernetes.io/zone"] = n.Zone
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": n.Name, "labels": labels},
		"spec":     map[string]any{"podCIDR": n.Pods, "podCIDRs": n.podCIDRs()},
		"status":   map[string]any{"addresses": addresses},
	}
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// kubeList returns a List of objects.
func kubeList(items []any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
}

// files returns the configuration files, by name.
func (s spec) files() map[string]any {
	files := map[string]any{"storage.json": kubeList(storageClasses())}
	if s.Multus {
		files["multus-kind.json"], files["multus-network.json"] = attachmentDefinition(), s.attachmentObjects()
	}
	maps.Copy(files, s.plugin().files(s))
	for _, n := range s.nodes() {
		files[n.Name+"/kubelet.json"], files[n.Name+"/node.json"] = s.kubeletConfig(n), nodeObject(n)
	}
	return files
}

// writeFiles writes the certificates and every configuration file.
func (s spec) writeFiles() error {
	for _, n := range s.nodes() {
		if err := s.writeNode(n); err != nil {
			return err
		}
	}
	for name, content := range s.files() {
		if err := writeJSON(s.file(name), content); err != nil {
			return err
		}
	}
	ca, root, err := newAuthority()
	if err != nil {
		return err
	}
	for file, user := range s.users() {
		p, err := ca.issue(clientCertificate(user[0], user[1:]...))
		if err != nil {
			return err
		}
		if err := writeJSON(s.file(file), s.kubeconfigOf(root.Cert, p)); err != nil {
			return err
		}
	}
	// Any key can sign the tokens of service accounts.
	for name, certificate := range map[string]*x509.Certificate{
		"apiserver":         serverCertificate("kube-apiserver", s.control(), s.apiService(), "127.0.0.1"),
		"apiserver-kubelet": clientCertificate("kube-apiserver-kubelet-client", "system:masters"),
		"accounts":          clientCertificate("service-accounts"),
	} {
		p, err := ca.issue(certificate)
		if err != nil {
			return err
		}
		if err := p.write(s.file(name)); err != nil {
			return err
		}
	}
	return root.write(s.file("ca"))
}

// users returns the names of the kubeconfigs, each with its user and that user's groups.
func (s spec) users() map[string][]string {
	users := map[string][]string{
		"kubeconfig": {"admin", "system:masters"}, "controller-manager.conf": {"system:kube-controller-manager"},
		"scheduler.conf": {"system:kube-scheduler"}, "proxy.conf": {"system:kube-proxy"},
		"provisioner.conf": {"provisioner", "system:masters"},
	}
	if s.Multus {
		users["multus.conf"] = []string{"multus", "system:masters"}
	}
	for _, network := range networks { // the cluster may change to any of them later
		maps.Copy(users, spec{Network: network}.plugin().users())
	}
	for _, n := range s.nodes() {
		users[n.Name+".conf"] = []string{"system:node:" + n.Name, "system:nodes"}
	}
	return users
}

// writeNode makes a node's directories, and writes the files in them that are not in [spec.files].
func (s spec) writeNode(n node) error {
	for _, dir := range []string{"cni", "logs", "plugins", "ipam", "kubelet", "containerd", "state"} {
		if err := os.MkdirAll(n.file(dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(n.file("containerd.toml"), []byte(s.containerdConfig(n)), 0o600); err != nil {
		return err
	}
	if config := s.plugin().config(s, n); config != nil {
		return s.writeCNI(n, config)
	}
	return nil
}

// conflistFile returns the path of the CNI configuration of a node's default network.
func (s spec) conflistFile(n node) string { return n.file("cni/10-" + s.Network + ".conflist") }

// writeCNI writes a node's CNI configuration; with Multus, as the network that it delegates to.
func (s spec) writeCNI(n node, config map[string]any) error {
	if !s.Multus {
		return writeJSON(s.conflistFile(n), config)
	}
	return errors.Join(
		writeJSON(n.file("cni/20-"+attachment+".conf"), s.attachmentConfig(n)),
		writeJSON(n.file("cni/00-multus.conf"), s.multusConfig(n, config)), // the runtime uses the first file by name
	)
}
