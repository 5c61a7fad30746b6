package product

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

// canal is Calico's policies with flannel's network.
func canal() Product {
	return Product{Name: "canal", Images: []string{"canal"}, Carries: true, ConfigMaps: []string{canalMap}}
}

// flannel is recognized by its config map, annotations of the nodes, and devices. It does not always have a daemon set:
// k3s embeds it, and other distributions run it next to the kubelet.
func flannel() Product {
	return Product{
		Name: "flannel", Images: []string{"flannel"}, Carries: true,
		ConfigMaps: []string{"kube-flannel/kube-flannel-cfg", "kube-system/kube-flannel-cfg", canalMap},
		Devices: []DeviceSign{{Prefix: "flannel.", Encapsulation: "vxlan"}, {Prefix: "flannel-wg", Encryption: "wireguard"},
			{Prefix: "flannel"}},
		Traces: flannelTraces, Encapsulation: flannelEncapsulation, Encryption: flannelEncryption,
	}
}

const (
	canalMap         = "kube-system/canal-config"
	flannelType      = "flannel.alpha.coreos.com/backend-type" // annotation of nodes
	backendOfFlannel = "backend of flannel"
)

// flannelBackends maps flannel's backends to their encapsulation and encryption. Those of clouds and host-gw are
// routes; whether clouds encrypt is not known.
var flannelBackends = map[string]struct{ encapsulation, encryption string }{
	"vxlan": {"vxlan", result.None}, "udp": {"udp", result.None}, "ipip": {"ipip", result.None},
	"host-gw": {result.None, result.None}, "wireguard": {"wireguard", "wireguard"}, "ipsec": {"ipsec", "ipsec"},
	"ali-vpc": {result.None, ""}, "aws-vpc": {result.None, ""}, "gce": {result.None, ""}, "tencent-vpc": {result.None, ""},
}

// A flannelConf is the backend of flannel in a config map; the zero value is no backend.
type flannelConf struct {
	backend string // such as vxlan
	direct  bool   // packets within a subnet take no tunnel
	name    string // of the config map
}

// flannelConfig returns the backend in flannel's config map. If nodes are known and none has flannel's annotations, the
// map is a leftover or not the one that flannel reads, and flannelConfig returns none.
func flannelConfig(e Evidence) flannelConf {
	if written, _ := flannelAnnotations(e); len(e.Nodes) > 0 && len(written) == 0 {
		return flannelConf{}
	}
	for _, name := range flannel().ConfigMaps {
		var conf struct {
			Backend struct {
				Type          string
				DirectRouting bool
			}
		}
		text := []byte(e.Config[name]["net-conf.json"])
		if json.Unmarshal(text, &conf) == nil && plainSetting.MatchString(conf.Backend.Type) {
			return flannelConf{conf.Backend.Type, conf.Backend.DirectRouting, name}
		}
	}
	return flannelConf{}
}

// flannelAnnotations returns the backends in flannel's annotations of the nodes, and whether all nodes have one.
func flannelAnnotations(e Evidence) (backends []string, all bool) {
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

// flannelEncapsulation returns the tunnel of the backend in the config map, unless a node's annotation names another
// backend, since flannel reads the map only when it starts; else of those in the annotations.
func flannelEncapsulation(e Evidence) []Property {
	c := flannelConfig(e)
	backends, _ := flannelAnnotations(e)
	f := Property{Source: "backend " + c.backend + " of flannel, config map " + c.name}
	another := func(backend string) bool { return backend != c.backend }
	if c.backend == "" || slices.ContainsFunc(backends, another) {
		f = Property{Source: "backend " + strings.Join(backends, " | ") + " of flannel, " + onNodes, Strength: Annotated}
	} else {
		backends = []string{c.backend}
	}
	var list []Property
	for _, b := range backends {
		f.Value = result.Unknown
		if tunnel := flannelBackends[b].encapsulation; tunnel != "" {
			f.Value = tunnel
		}
		if f.Strength == Configured && c.direct && f.Value != result.None && f.Value != result.Unknown {
			f.Value += crossSubnet
		}
		list = append(list, f)
	}
	return list
}

// flannelEncryption returns the encryption of the backends, none if one is unknown. A backend that encrypts does
// whatever another plugin does. One that does not counts only if flannel is alone, because another plugin may encrypt
// its packets.
func flannelEncryption(e Evidence) []Property {
	backends, _ := flannelAnnotations(e)
	if len(backends) == 0 {
		backends = []string{flannelConfig(e).backend}
	}
	var list []Property
	strength := Assumed
	for _, b := range backends {
		encryption := flannelBackends[b].encryption
		if encryption == "" || encryption == result.None && !onlyFlannel(e) {
			return nil
		}
		if encryption != result.None {
			strength = Configured
		}
		list = append(list, Property{Value: encryption, Source: backendOfFlannel})
	}
	for i := range list {
		list[i].Strength = strength
	}
	return list
}

// onlyFlannel reports whether flannel alone provides the pod network.
func onlyFlannel(e Evidence) bool {
	names := e.carriers()
	return !e.othersLeftTraces("flannel") &&
		(slices.Equal(names, []string{"flannel"}) || len(names) == 0 && flannelTraces(e) != "")
}

// flannelTraces returns the source that shows a flannel without a daemon set; none if another plugin left traces too. A
// config map alone may be a leftover, so it counts only if the nodes are unknown.
func flannelTraces(e Evidence) string {
	_, written := flannelAnnotations(e)
	name := flannelConfig(e).name
	tunnel, bridge := e.devices(DeviceSign{Prefix: "flannel"}), e.devices(DeviceSign{Prefix: "cni0"})
	switch {
	case e.othersLeftTraces("flannel"):
		return ""
	case written:
		return onNodes
	case len(tunnel) > 0 && len(bridge) > 0:
		return "devices " + tunnel[0].Name + " and " + bridge[0].Name + " of the node"
	case len(e.Nodes) == 0 && name != "":
		return "config map " + name
	}
	return ""
}
