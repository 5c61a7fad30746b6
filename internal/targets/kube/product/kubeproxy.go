package product

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const kubeProxyMap = "kube-system/kube-proxy"

// proxyModes are the modes of kube-proxy.
var proxyModes = []string{"iptables", "ipvs", "nftables", "userspace"}

// kubeProxy implements Services where no other product replaces it.
func kubeProxy() Product {
	return Product{
		Name: "kube-proxy", ConfigMaps: []string{kubeProxyMap},
		Devices: []DeviceSign{{Prefix: "kube-ipvs0", Services: "ipvs"}},
	}
}

// ProxyURLs returns the URLs at which kube-proxy may report its mode on the node with an address.
func ProxyURLs(address string) []string {
	var urls []string
	for _, host := range []string{"127.0.0.1", address} {
		u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, "10249"), Path: "/proxyMode"}
		urls = append(urls, u.String())
	}
	return urls
}

// proxyReported returns the mode that kube-proxy reported at one of ProxyURLs.
func proxyReported(e Evidence) []Property {
	if e.Node == nil {
		return nil
	}
	for _, u := range slices.Sorted(maps.Keys(e.Node.Answers)) {
		if mode := strings.TrimSpace(e.Node.Answers[u]); slices.Contains(proxyModes, mode) {
			return one(mode, "kube-proxy says so")
		}
	}
	return nil
}

// proxyConfigured returns the mode in kube-proxy's config map; none if daemon sets are known and none is kube-proxy,
// since the map may be a leftover.
func proxyConfigured(e Evidence) []Property {
	if len(e.DaemonSets) > 0 && len(e.containers(withImage("kube-proxy"))) == 0 {
		return nil
	}
	for _, key := range []string{"config.conf", "config", "kube-proxy-config.yaml"} {
		text, ok := e.Config[kubeProxyMap][key]
		if !ok {
			continue
		}
		var conf struct {
			Mode string `json:"mode"`
		}
		switch err := yaml.Unmarshal([]byte(text), &conf); {
		case err == nil && conf.Mode == "":
			return one("iptables", byDefault("kube-proxy", kubeProxyMap))
		case err == nil && slices.Contains(proxyModes, conf.Mode):
			return one(conf.Mode, inConfigMap(kubeProxyMap))
		}
		return nil
	}
	return nil
}
