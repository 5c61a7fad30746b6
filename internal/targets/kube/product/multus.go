package product

import (
	"encoding/json"
	"regexp"
	"slices"
)

// Annotations of Multus and of plugins that follow it: the networks of a pod, and those that a pod asks for.
const (
	MultusStatus         = "k8s.v1.cni.cncf.io/network-status"
	MultusRequest        = "k8s.v1.cni.cncf.io/networks"
	MultusDefaultRequest = "v1.multus-cni.io/default-network"
)

// Definitions of networks that pods can be attached to, by the Network Plumbing Working Group.
const (
	AttachmentsGroup = "k8s.cni.cncf.io"
	Attachments      = "network-attachment-definitions"
)

// Chain returns the plugins of a CNI configuration in order. It reads nothing else of the configuration, and returns
// nil if the configuration is invalid or the name of a plugin is not that of a program.
func Chain(config string) []string {
	var network struct {
		Type    string
		Plugins []struct{ Type string }
	}
	if json.Unmarshal([]byte(config), &network) != nil {
		return nil
	}
	var chain []string
	if network.Type != "" {
		chain = append(chain, network.Type)
	}
	for _, p := range network.Plugins {
		chain = append(chain, p.Type)
	}
	if slices.ContainsFunc(chain, func(name string) bool { return !programName.MatchString(name) }) {
		return nil
	}
	return chain
}

// programName matches names of plugin programs.
var programName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

func multus() Product {
	return Product{Name: "multus", Images: []string{"multus"}, OnlyAttaches: true}
}

func spiderpool() Product {
	return Product{Name: "spiderpool", Images: []string{"spiderpool"}, OnlyAttaches: true}
}
