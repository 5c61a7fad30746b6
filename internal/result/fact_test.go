package result

import "testing"

// TestReadFact checks that files with sentences as values are read as values with their evidence, and that what is not
// understood is unknown or left as it is.
func TestReadFact(t *testing.T) {
	for _, test := range []struct{ name, old, value, evidence string }{
		{"encapsulation", "none, native routing (config map cilium-config)", "none", "config map cilium-config"},
		{"encapsulation", "none, routes (IPPools of Calico)", "none", "IPPools of Calico"},
		{"encapsulation", "none, addresses of the VPC (amazon-vpc has nothing else)", "none", "amazon-vpc has nothing else"},
		{"encapsulation", "flannel host-gw (config map kube-flannel/kube-flannel-cfg)", "none",
			"config map kube-flannel/kube-flannel-cfg"},
		{"encapsulation", "flannel vxlan (annotation of the nodes)", "vxlan", "annotation of the nodes"},
		{"encapsulation", "flannel vxlan with direct routing (config map x)", "vxlan-cross-subnet", "config map x"},
		{"encapsulation", "flannel tencent-vpc (annotation of the nodes)", Unknown, "annotation of the nodes"},
		{"encapsulation", "vxlan between subnets, routes within one (IPPools of Calico)", "vxlan-cross-subnet",
			"IPPools of Calico"},
		{"encapsulation", "ipip, always or between subnets (annotation of the nodes)", "ipip-maybe-cross-subnet",
			"annotation of the nodes"},
		{"encapsulation", "vxlan (device a of the node) | geneve (device b of the node)", "geneve | vxlan",
			"device a of the node; device b of the node"},
		{"encapsulation", Unknown, Unknown, ""},
		{"encryption", "wireguard, between nodes too (config map cilium-config)", "wireguard", "config map cilium-config"},
		{"encryption", "none (backend of flannel)", "none", "backend of flannel"},
		{"kube-proxy", "replaced by cilium (config map cilium-config)", "replaced by cilium", "config map cilium-config"},
		{"mesh", "none (containers, annotations and sockets of the pods)", "none",
			"containers, annotations and sockets of the pods"},
		{MeshIntercepted, "yes (port 15008 (of ztunnel) is between them)", "yes", "port 15008 (of ztunnel) is between them"},
		{"tunnel-mtu", "does not fit: pods 1500, vxlan 50, nodes 1500", "does not fit", "pods 1500, vxlan 50, nodes 1500"},
		{"proxy", "HAProxy 2.6.12: a TLS connection for each connection", "haproxy",
			"HAProxy 2.6.12: a TLS connection for each connection"},
		{"cpu-model", "Intel(R) Xeon (Skylake)", "Intel(R) Xeon (Skylake)", ""},
	} {
		got := Fact{Name: test.name, Value: test.old}.Read()
		if want := (Fact{test.name, test.value, test.evidence}); got != want || got.Read() != got {
			t.Errorf("%s %q is read as %+v", test.name, test.old, got)
		}
	}
}
