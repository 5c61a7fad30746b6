package product

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/knotmeter/knotmeter/internal/machine"
	"github.com/knotmeter/knotmeter/internal/preflight"
)

// An Evidence holds the objects and preflight reports that the facts of a cluster derive from. Each part may be
// missing, since the user may lack the right to read it.
//
// Products read only the settings that they name, and show only values that look like settings, so that no other data
// of a cluster, such as secrets, gets into a fact.
type Evidence struct {
	Version        string   // of the API server
	Network        string   // additional network that the traffic takes, or empty
	DefaultNetwork string   // network that pods have in place of the cluster's, or empty
	Chain          []string // plugins of DefaultNetwork, if known
	Nodes          []corev1.Node
	DaemonSets     []appsv1.DaemonSet
	Config         map[string]map[string]string // config maps by NAMESPACE/NAME
	Custom         map[string][]json.RawMessage // custom resources by plural
	Node           *preflight.Report            // from a pod in its node's network
	Pod            *preflight.Report            // from a pod in the pod network
	Admitted       *corev1.Pod                  // the pod that reported Pod, as the API server admitted it
}

// plainSetting matches values that are safe to show. Keys and passwords are longer, or are never under the names that
// products show.
var plainSetting = regexp.MustCompile(`^[A-Za-z0-9.,:/_-]{1,40}$`)

// IsPlainSetting reports whether a value is safe to show.
func IsPlainSetting(value string) bool { return plainSetting.MatchString(value) }

// custom returns the custom resources of a plural that can be decoded.
func custom[T any](e Evidence, plural string) (list []T) {
	for _, text := range e.Custom[plural] {
		var object T
		if json.Unmarshal(text, &object) == nil {
			list = append(list, object)
		}
	}
	return list
}

// containers returns the containers of daemon sets.
func (e Evidence) containers(match func(corev1.Container) bool) (list []corev1.Container) {
	for _, d := range e.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if match(c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// withImage returns a function that matches the containers whose image's name contains a text.
func withImage(text string) func(corev1.Container) bool {
	return func(c corev1.Container) bool { return strings.Contains(imageName(c.Image), text) }
}

// imageName returns the name of an image without registry and repository.
func imageName(image string) string { return image[strings.LastIndex(image, "/")+1:] }

// Plugins returns the network plugins that run as daemon sets, and their images without registry and repository; both
// sorted.
func (e Evidence) Plugins() (names, images []string) {
	all := All()
	for _, c := range e.containers(func(corev1.Container) bool { return true }) {
		i := slices.IndexFunc(all, func(p Product) bool {
			return !slices.Contains(names, p.Name) && slices.ContainsFunc(p.Images, func(part string) bool {
				return strings.Contains(imageName(c.Image), part) ||
					strings.Contains(part, "/") && strings.Contains(c.Image, part)
			})
		})
		if i >= 0 {
			names, images = append(names, all[i].Name), append(images, imageName(c.Image))
		}
	}
	slices.Sort(names)
	slices.Sort(images)
	return names, images
}

// runs reports whether a network plugin runs as a daemon set.
func (e Evidence) runs(plugin string) bool {
	names, _ := e.Plugins()
	return slices.Contains(names, plugin)
}

// leftTraces reports whether a product's config maps, custom resources, annotations or devices are in the cluster.
func (e Evidence) leftTraces(p Product) bool {
	for _, name := range p.ConfigMaps {
		if e.Config[name] != nil {
			return true
		}
	}
	for _, r := range p.Resources {
		if len(e.Custom[r.Plural]) > 0 {
			return true
		}
	}
	for _, n := range e.Nodes {
		for key := range n.Annotations {
			if group, _, _ := strings.Cut(key, "/"); group == p.Annotations {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Devices, func(d DeviceSign) bool { return len(e.devices(d)) > 0 })
}

// devices returns the devices of the node that are instances of d.
func (e Evidence) devices(d DeviceSign) (list []machine.Interface) {
	if e.Node == nil {
		return nil
	}
	for _, i := range e.Node.Interfaces {
		if strings.HasPrefix(i.Name, d.Prefix) && (!d.NeedsAddress || len(i.Addresses) > 0) {
			list = append(list, i)
		}
	}
	return list
}

// inConfigMap returns the source that is a config map, NAMESPACE/NAME.
func inConfigMap(name string) string { return "config map " + imageName(name) }

// onNodes is a source that several products have.
const onNodes = "annotation of the nodes"

// listensAt reports whether a socket listens at a port of the network namespace of a report; r may be nil.
func listensAt(r *preflight.Report, port uint16) bool {
	return r != nil && slices.ContainsFunc(r.Sockets, func(s machine.Socket) bool {
		return s.Listening && s.Local.Port() == port
	})
}
