package product

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/result"
)

const routerArguments = "arguments of kube-router"

func kubeRouter() Product {
	return Product{
		Name: "kube-router", Images: []string{"kube-router"}, Annotations: "kube-router.io",
		Encapsulation: routerEncapsulation,
		Encryption: func(e Evidence) []Property {
			if names, _ := e.Plugins(); routerCarries(e) && len(names) == 1 {
				return []Property{{Value: result.None, Source: "kube-router has no encryption", Strength: Assumed}}
			}
			return nil
		},
		Services: func(e Evidence) []Property {
			if service, ok := routerArgument(e, "run-service-proxy", "true"); ok && service == "true" {
				return one("ipvs", routerArguments)
			}
			return nil
		},
	}
}

// routerArgument returns the value of an argument of kube-router's daemon set, or byDefault if it is not given. A
// switch without a value is true; the value of another argument may be the next argument. ok is false if there is no
// kube-router, or if the value does not look like a setting.
func routerArgument(e Evidence, name, byDefault string) (value string, ok bool) {
	for _, c := range e.containers(func(c corev1.Container) bool { return strings.Contains(c.Image, "kube-router") }) {
		arguments := slices.Concat(c.Command, c.Args)
		for i, argument := range arguments {
			key, v, given := strings.Cut(strings.TrimLeft(argument, "-"), "=")
			if key != name {
				continue
			}
			switch {
			case given:
			case byDefault == "true" || byDefault == "false":
				v = "true"
			case i+1 < len(arguments):
				v = arguments[i+1]
			}
			return v, plainSetting.MatchString(v)
		}
		return byDefault, true
	}
	return "", false
}

// routerCarries reports whether kube-router carries packets, instead of only enforcing policies or advertising routes
// next to another plugin.
func routerCarries(e Evidence) bool {
	runs, _ := routerArgument(e, "run-router", "true")
	connects, _ := routerArgument(e, "enable-cni", "true")
	return runs == "true" && connects == "true"
}

func routerEncapsulation(e Evidence) []Property {
	overlay, _ := routerArgument(e, "enable-overlay", "true")
	kind, _ := routerArgument(e, "overlay-type", "subnet")
	tunnel, _ := routerArgument(e, "overlay-encap", "ipip")
	switch {
	case !routerCarries(e):
		return nil
	case overlay != "true":
		return one(result.None, routerArguments)
	case tunnel != "ipip" && tunnel != "fou":
		return nil
	case kind == "full":
		return one(tunnel, routerArguments)
	case kind == "subnet":
		return one(tunnel+crossSubnet, routerArguments)
	}
	return nil
}
