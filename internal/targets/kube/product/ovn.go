package product

// ovnKubernetes implements Services in Open vSwitch itself.
func ovnKubernetes() Product {
	return Product{
		Name: "ovn-kubernetes", Images: []string{"ovn-kube"}, Annotations: "k8s.ovn.org",
		Devices: []DeviceSign{{Prefix: "ovn-k8s"}},
		Services: func(e Evidence) []Property {
			if e.runs("ovn-kubernetes") {
				return one(Replaces, "it does Services itself")
			}
			return nil
		},
	}
}

func kubeOVN() Product {
	return Product{Name: "kube-ovn", Images: []string{"kube-ovn"}, Devices: []DeviceSign{{Prefix: "ovn0"}}}
}

// openVSwitch has the devices of plugins that are built on it, and others whose names tell no product.
func openVSwitch() Product {
	return Product{Name: "open-vswitch", Devices: []DeviceSign{{Prefix: "genev_sys", Encapsulation: "geneve"},
		{Prefix: "vxlan_sys", Encapsulation: "vxlan"}, {Prefix: "wg-", Encryption: "wireguard"}}}
}
