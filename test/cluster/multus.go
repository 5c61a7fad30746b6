//go:build linux

package main

import "encoding/json"

// Networks that pods can request from Multus, in the namespace default: one in addition to their own, and one in its
// place.
const (
	attachment        = "macvlan"
	defaultAttachment = "macvlan-veth"
)

// vethProgram is spidernet's plugin for networks that bypass the node, such as macvlan and SR-IOV: a pair of devices
// between a pod and its node, by which the pod reaches Services and the node.
var vethProgram = program{name: "veth", module: "veth", source: "github.com/spidernet-io/cni-plugins/plugins/veth"}

// multusConfig returns the CNI configuration of a node with Multus, which attaches pods to the default network and to
// those that they request.
func (s spec) multusConfig(n node, network map[string]any) map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus", "kubeconfig": s.file("multus.conf"),
		"capabilities": map[string]any{"portMappings": true}, "delegates": []any{network},
		"confDir": n.file("cni"), "binDir": s.Bin, "cniDir": n.file("multus"),
	}
}

// attachmentConfig returns the configuration of the additional network. Its addresses differ between nodes, so each
// node has it in a file, and the cluster only has its name.
func (s spec) attachmentConfig(n node) map[string]any {
	config := s.macvlan(n)
	config["cniVersion"], config["name"] = "1.0.0", attachment
	delete(config["ipam"].(map[string]any), "routes") // the default network has them
	return config
}

// defaultAttachmentConfig returns the configuration of the network in place of the pods' own. It is an object of the
// cluster, as in real ones: all nodes take addresses from one range, which host-local records in one directory.
func (s spec) defaultAttachmentConfig() map[string]any {
	veth := map[string]any{
		"type": vethProgram.name, "service_hijack_subnet": []string{s.services4()},
		"overlay_hijack_subnet": []string{s.pods4()},
	}
	return map[string]any{
		"cniVersion": "1.0.0", "name": defaultAttachment, "plugins": []any{s.macvlanOf(s.sharedIPAM(), 192, 254), veth},
	}
}

// sharedIPAM returns the directory of the addresses in that network, of all nodes.
func (s spec) sharedIPAM() string { return s.file("ipam") }

const attachmentGroup = "k8s.cni.cncf.io"

// attachmentDefinition returns the definition of the kind NetworkAttachmentDefinition, after the standard of the
// Network Plumbing Working Group.
func attachmentDefinition() map[string]any {
	text := map[string]any{"type": "string"}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "network-attachment-definitions." + attachmentGroup},
		"spec": map[string]any{
			"group": attachmentGroup, "scope": "Namespaced",
			"names": map[string]any{
				"plural": "network-attachment-definitions", "singular": "network-attachment-definition",
				"kind": "NetworkAttachmentDefinition", "shortNames": []string{"net-attach-def"},
			},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{
					"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object"},
					"spec": object(map[string]any{"config": text}),
				})},
			}},
		},
	}
}

// attachmentObjects returns the objects of the two networks: the additional one has a name alone.
func (s spec) attachmentObjects() map[string]any {
	config, _ := json.Marshal(s.defaultAttachmentConfig()) // strings and numbers always encode
	object := func(name string, spec map[string]any) any {
		return map[string]any{
			"apiVersion": attachmentGroup + "/v1", "kind": "NetworkAttachmentDefinition",
			"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
		}
	}
	return kubeList([]any{
		object(attachment, map[string]any{}), object(defaultAttachment, map[string]any{"config": string(config)}),
	})
}

// makeAttachment returns the commands that make the kind, and the networks once the API server knows it.
func (s spec) makeAttachment() []command {
	return []command{
		s.kubectl("apply", "-f", s.file("multus-kind.json")),
		s.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", s.file("multus-kind.json")),
		s.kubectl("apply", "-f", s.file("multus-network.json")),
	}
}
