package inspection

import (
	"encoding/json"
	"slices"
	"strings"
)

// What flannel leaves where it runs: its config map, annotations of the nodes, devices. There is not always a daemon
// set: k3s has flannel within itself, and others run it beside the kubelet.

const flannelType = "flannel.alpha.coreos.com/backend-type"

// flannelMaps are the config maps that flannel may have, alone or as a part of canal.
var flannelMaps = []string{"kube-flannel/kube-flannel-cfg", "kube-system/kube-flannel-cfg", "kube-system/canal-config"}

// A flannelConf is a backend of flannel in a config map, or none.
type flannelConf struct {
	kind, text string // vxlan, and how it is said with its settings
	name       string // of the config map
}

// flannelConfig is the backend in flannel's own config map, alone or as a part of canal. Where no node has flannel's
// annotations, the map is left of a flannel that is gone, or not what flannel reads.
func (e Evidence) flannelConfig() flannelConf {
	if written, _ := e.flannelWritten(); len(e.Nodes) > 0 && len(written) == 0 {
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
		if json.Unmarshal(text, &conf) != nil || !plain.MatchString(conf.Backend.Type) {
			continue
		}
		c := flannelConf{kind: conf.Backend.Type, text: conf.Backend.Type, name: name}
		if conf.Backend.DirectRouting {
			c.text += " with direct routing"
		}
		return c
	}
	return flannelConf{}
}

// flannelWritten are the backends that flannel has written on the nodes that take part, and whether it has on all of
// them.
func (e Evidence) flannelWritten() (backends []string, all bool) {
	all = len(e.Nodes) > 0
	for _, n := range e.Nodes {
		backend := n.Annotations[flannelType]
		switch {
		case !plain.MatchString(backend):
			all = false
		case !slices.Contains(backends, backend):
			backends = append(backends, backend)
		}
	}
	slices.Sort(backends)
	return backends, all
}

// flannelBackend is that of the config map, unless flannel runs with another one: it reads the map when it starts.
func (e Evidence) flannelBackend() string {
	c := e.flannelConfig()
	another := func(written string) bool { return written != c.kind }
	if written, _ := e.flannelWritten(); c.kind == "" || slices.ContainsFunc(written, another) {
		return ""
	}
	return "flannel " + c.text + " (config map " + c.name + ")"
}

// flannelBackends are how flannel's backends encrypt.
var flannelBackends = map[string]string{
	"wireguard": "wireguard", "ipsec": "ipsec", "vxlan": "none", "host-gw": "none", "udp": "none", "ipip": "none",
}

// flannelEncryption is what the backends do that flannel runs with, and whether one of them encrypts; of some nobody
// knows. That they do not encrypt says nothing where another plugin is beside flannel.
func (e Evidence) flannelEncryption() (text string, encrypts bool) {
	backends, _ := e.flannelWritten()
	if len(backends) == 0 {
		backends = []string{e.flannelConfig().kind}
	}
	var list []string
	for _, b := range backends {
		does := flannelBackends[b]
		if does == "" || does == "none" && !e.onlyFlannel() {
			return "", false
		}
		encrypts = encrypts || does != "none"
		list = append(list, does)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " | ") + " (backend of flannel)", encrypts
}

// onlyFlannel says that the pods' network is flannel's alone.
func (e Evidence) onlyFlannel() bool {
	names, _ := e.Plugins()
	names = slices.DeleteFunc(names, attaches)
	return !e.othersThere() && (slices.Equal(names, []string{"flannel"}) || len(names) == 0 && e.flannelTraces() != "")
}

// flannelTraces says by what flannel is known where no daemon set tells; empty if it is not, or if others have left
// traces too. A config map may be left of a flannel that is gone, but not if the nodes have its annotations.
func (e Evidence) flannelTraces() string {
	_, written := e.flannelWritten()
	name := e.flannelConfig().name
	tunnel, bridge := e.device("flannel"), e.device("cni0")
	switch {
	case e.othersThere():
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

// device is one of a node whose name begins so; empty if there is none.
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

// What other plugins leave where they run: config maps, devices of nodes by how their names begin, groups of
// annotations.
var (
	otherMaps = []string{CiliumMap, "kube-system/canal-config", "kube-system/calico-config",
		"kube-system/antrea-config"}
	otherDevices = []string{"cilium", "lxc", "cali", "vxlan.calico", "wireguard.cali", "antrea", "ovn-k8s", "ovn0",
		"weave"}
	otherGroups = []string{"projectcalico.org", "network.cilium.io", "node.antrea.io", "k8s.ovn.org", "kube-router.io"}
)

// othersThere says whether another network plugin that may carry or encrypt the pods' packets has left something.
func (e Evidence) othersThere() bool {
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
