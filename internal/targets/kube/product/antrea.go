package product

import (
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/knotmeter/knotmeter/internal/result"
)

const antreaMap = "kube-system/antrea-config"

func antrea() Product {
	return Product{
		Name: "antrea", Images: []string{"antrea/antrea-agent"}, ConfigMaps: []string{antreaMap},
		Annotations: "node.antrea.io",
		Devices: []DeviceSign{{Prefix: "antrea-tun", Encapsulation: "tunnel"}, {Prefix: "antrea-wg", Encryption: "wireguard"},
			{Prefix: "antrea"}},
		Encapsulation: antreaEncapsulation,
		Encryption:    antreaEncryption,
		Services: func(e Evidence) []Property {
			if c, _ := antreaConfig(e); c.Proxy.All {
				return one(Replaces, inConfigMap(antreaMap))
			}
			return nil
		},
	}
}

// An antreaConf holds the used fields of the agent's configuration. Missing fields have their defaults.
type antreaConf struct {
	Encap      string `json:"trafficEncapMode"`
	Tunnel     string `json:"tunnelType"`
	Encryption string `json:"trafficEncryptionMode"`
	IPsec      bool   `json:"enableIPSecTunnel"` // of versions without trafficEncryptionMode
	Proxy      struct {
		All bool `json:"proxyAll"`
	} `json:"antreaProxy"`
}

// antreaConfig returns the configuration of the agent; ok is false if there is none, or if it cannot be parsed.
func antreaConfig(e Evidence) (c antreaConf, ok bool) {
	text, ok := e.Config[antreaMap]["antrea-agent.conf"]
	if !ok || yaml.Unmarshal([]byte(text), &c) != nil {
		return antreaConf{}, false
	}
	return c, true
}

func antreaEncapsulation(e Evidence) []Property {
	c, ok := antreaConfig(e)
	tunnel, source := c.Tunnel, inConfigMap(antreaMap)
	switch {
	case strings.EqualFold(c.Encryption, "wireGuard"):
		tunnel = "wireguard" // instead of the type that is configured
	case tunnel == "":
		tunnel, source = "geneve", byDefault("Antrea", antreaMap)
	}
	switch encap := strings.ToLower(c.Encap); {
	case !ok || !plainSetting.MatchString(tunnel):
		return nil
	case encap == "noencap":
		return one(result.None, inConfigMap(antreaMap))
	case encap == "hybrid":
		return one(tunnel+crossSubnet, source)
	case encap == "" || encap == "encap":
		return one(tunnel, source)
	}
	return nil // with networkPolicyOnly another plugin carries the packets
}

func antreaEncryption(e Evidence) []Property {
	c, ok := antreaConfig(e)
	switch {
	case !ok:
		return nil
	case strings.EqualFold(c.Encryption, "wireGuard"):
		return one("wireguard", inConfigMap(antreaMap))
	case strings.EqualFold(c.Encryption, "ipsec"), c.IPsec:
		return one("ipsec", inConfigMap(antreaMap))
	case strings.EqualFold(c.Encap, "networkPolicyOnly"):
		return nil // another plugin carries the packets
	}
	return one(result.None, inConfigMap(antreaMap))
}
