package product

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
)

// weave always has the bridge weave, but the device vxlan-6784 only if it uses VXLAN.
func weave() Product {
	return Product{
		Name: "weave", Images: []string{"weave-kube"},
		Devices: []DeviceSign{{Prefix: "vxlan-6784", Encapsulation: "vxlan"}, {Prefix: "weave"}},
		// It encrypts if it has a password, whose value is not read.
		Encryption: func(e Evidence) []Property {
			found := e.containers(func(c corev1.Container) bool { return strings.Contains(c.Image, "weave-kube") })
			if len(found) == 0 {
				return nil
			}
			switch {
			case len(found[0].EnvFrom) > 0:
				return one(result.Unknown, "") // the password may be in one of these sources
			case slices.ContainsFunc(found[0].Env, func(v corev1.EnvVar) bool { return v.Name == "WEAVE_PASSWORD" }):
				return one("on", "weave has a password")
			}
			return one(result.None, "weave has no password")
		},
	}
}
