package inspection

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// Flannel is recognized by its config map, annotations of the nodes, and devices. It does not always have a daemon set:
// k3s embeds flannel, and other distributions run it next to the kubelet.

const flannelType = "flannel.alpha.coreos.com/backend-type"

// flannelMaps lists the config maps that flannel may have, alone or as a part of canal.
var flannelMaps = []string{"kube-flannel/kube-flannel-cfg", "kube-system/kube-flannel-cfg", "kube-system/canal-config"}

// A flannelConf is the backend of flannel in a config map; the zero value is no backend.
type flannelConf struct {
	kind   string // such as vxlan
	direct bool   // packets within a subnet take no tunnel
	name   string // of the config map
}

// backendTunnels maps flannel's backends to their encapsulation. Those of clouds and host-gw are routes.
var backendTunnels = map[string]string{
	"vxlan": "vxlan", "udp": "udp", "ipip": "ipip", "wireguard": "wireguard", "ipsec": "ipsec",
	"host-gw": result.None, "ali-vpc": result.None, "aws-vpc": result.None, "gce": result.None, "tencent-vpc": result.None,
}

// backendTunnel returns the encapsulation of a backend; direct: not within a subnet.
func backendTunnel(backend string, direct bool) string {
	tunnel := cmp.Or(backendTunnels[backend], result.Unknown)
	if direct && tunnel != result.None && tunnel != result.Unknown {
		tunnel += crossSubnet
	}
	return tunnel
}

// flannelConfig returns the backend in flannel's config map. If nodes are known and none has flannel's annotations, the
// map is a leftover or not the one that flannel reads, and flannelConfig returns none.
func (e Evidence) flannelConfig() flannelConf {
	if written, _ := e.flannelAnnotations(); len(e.Nodes) > 0 && len(written) == 0 {
		return flannelConf{}
	}
	for _, name := range flannelMaps {
		var conf struct {
			Backend struct {
				Type          string
				DirectRouting bool
			}
		}
		text := []byte(e.Config[name]["net-conf.json"])
		if json.Unmarshal(text, &conf) != nil || !plainSetting.MatchString(conf.Backend.Type) {
			continue
		}
		return flannelConf{kind: conf.Backend.Type, direct: conf.Backend.DirectRouting, name: name}
	}
	return flannelConf{}
}

// flannelAnnotations returns the backends in flannel's annotations of the nodes, and whether all nodes have one.
func (e Evidence) flannelAnnotations() (backends []string, all bool) {
	all = len(e.Nodes) > 0
	for _, n := range e.Nodes {
		backend := n.Annotations[flannelType]
		switch {
		case !plainSetting.MatchString(backend):
			all = false
		case !slices.Contains(backends, backend):
			backends = append(backends, backend)
		}
	}
	slices.Sort(backends)
	return backends, all
}

// flannelBackend returns the backend of the config map with its evidence; empty if a node's annotation names another
// one, since flannel reads the map only when it starts.
func (e Evidence) flannelBackend() string {
	c := e.flannelConfig()
	another := func(written string) bool { return written != c.kind }
	if written, _ := e.flannelAnnotations(); c.kind == "" || slices.ContainsFunc(written, another) {
		return ""
	}
	return backendTunnel(c.kind, c.direct) + " (backend " + c.kind + " of flannel, config map " + c.name + ")"
}

// flannelEncryptions maps flannel's backends to their encryption.
var flannelEncryptions = map[string]string{
	"wireguard": "wireguard", "ipsec": "ipsec",
	"vxlan": result.None, "host-gw": result.None, "udp": result.None, "ipip": result.None,
}

// flannelEncryption returns the encryption of flannel's backends, and whether one of them encrypts. It returns an empty
// text if a backend is unknown. A backend without encryption counts only if flannel is alone, because another plugin
// may encrypt its packets.
func (e Evidence) flannelEncryption() (text string, encrypts bool) {
	backends, _ := e.flannelAnnotations()
	if len(backends) == 0 {
		backends = []string{e.flannelConfig().kind}
	}
	var list []string
	for _, b := range backends {
		encryption := flannelEncryptions[b]
		if encryption == "" || encryption == result.None && !e.onlyFlannel() {
			return "", false
		}
		encrypts = encrypts || encryption != result.None
		list = append(list, encryption)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " | ") + " (backend of flannel)", encrypts
}

// onlyFlannel reports whether flannel alone provides the pod network.
func (e Evidence) onlyFlannel() bool {
	names, _ := e.Plugins()
	names = slices.DeleteFunc(names, onlyAttaches)
	return !e.hasOtherPlugin() && (slices.Equal(names, []string{"flannel"}) || len(names) == 0 && e.flannelTraces() != "")
}

// flannelTraces returns the evidence of a flannel without a daemon set; empty if there is none, or if another plugin
// left traces too. A config map alone may be a leftover, so it counts only if the nodes are unknown.
func (e Evidence) flannelTraces() string {
	_, written := e.flannelAnnotations()
	name := e.flannelConfig().name
	tunnel, bridge := e.device("flannel"), e.device("cni0")
	switch {
	case e.hasOtherPlugin():
		return ""
	case written:
		return "annotation of the nodes"
	case tunnel != "" && bridge != "":
		return "devices " + tunnel + " and " + bridge + " of the node"
	case len(e.Nodes) == 0 && name != "":
		return "config map " + name
	}
	return ""
}

// device returns the first device of the node whose name has a prefix; empty if there is none.
func (e Evidence) device(prefix string) string {
	if e.Node == nil {
		return ""
	}
	for _, i := range e.Node.Interfaces {
		if strings.HasPrefix(i.Name, prefix) {
			return i.Name
		}
	}
	return ""
}

// Traces of other plugins: config maps, prefixes of device names, groups of node annotations.
var (
	otherMaps = []string{CiliumMap, "kube-system/canal-config", "kube-system/calico-config",
		"kube-system/antrea-config"}
	otherDevices = []string{"cilium", "lxc", "cali", "vxlan.calico", "wireguard.cali", "antrea", "ovn-k8s", "ovn0",
		"weave"}
	otherGroups = []string{"projectcalico.org", "network.cilium.io", "node.antrea.io", "k8s.ovn.org", "kube-router.io"}
)

// hasOtherPlugin reports whether there are traces of another network plugin that may carry or encrypt the pods'
// packets.
func (e Evidence) hasOtherPlugin() bool {
	for _, name := range otherMaps {
		if e.Config[name] != nil {
			return true
		}
	}
	for _, device := range otherDevices {
		if e.device(device) != "" {
			return true
		}
	}
	for _, n := range e.Nodes {
		for key := range n.Annotations {
			group, _, _ := strings.Cut(key, "/")
			if slices.Contains(otherGroups, group) {
				return true
			}
		}
	}
	return len(e.Pools) > 0 || e.Felix != nil || len(e.NodeConfigs) > 0
}
