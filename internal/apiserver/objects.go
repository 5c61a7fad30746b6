package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Labels of every object that a run creates: LabelManaged finds all objects of Knotmeter, LabelRun those of one run.
const (
	LabelManaged = "app.kubernetes.io/managed-by"
	ManagedBy    = "knotmeter"
	LabelRun     = "knotmeter.dev/run"
)

// UnschedulableLabel is a label that no node has. A pod that selects it never starts, so that it costs work of the API
// server and etcd only.
const UnschedulableLabel = "knotmeter.dev/nowhere"

// A Kind is a resource with the parts of its URLs and objects.
type Kind struct {
	Group, Version, Plural, Name string
	Namespaced                   bool
}

// KindOf returns the kind of a resource by its singular name, the zero Kind if it is unknown. An empty name stands for
// configmap.
func KindOf(resource string) Kind { return kinds[cmp.Or(resource, "configmap")] }

var kinds = map[string]Kind{
	"configmap":  {"", "v1", "configmaps", "ConfigMap", true},
	"namespace":  {"", "v1", "namespaces", "Namespace", false},
	"service":    {"", "v1", "services", "Service", true},
	"deployment": {"apps", "v1", "deployments", "Deployment", true},
	"pod":        {"", "v1", "pods", "Pod", true},

	"endpointslice": {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true},
	"networkpolicy": {"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true},
}

// owned returns the kinds of object that controllers create for objects of kind k, with the same labels.
func (k Kind) owned() []Kind {
	if k.Name == "Deployment" {
		return []Kind{{"apps", "v1", "replicasets", "ReplicaSet", true}, KindOf("pod")}
	}
	return nil
}

// collection returns the path of all objects of kind k, in a namespace if it has one.
func (k Kind) collection(namespace string) string {
	path := "/api/" + k.Version
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	if k.Namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.Plural
}

func (k Kind) apiVersion() string { return strings.TrimPrefix(k.Group+"/"+k.Version, "/") }

// An Inventory names the objects of one run.
type Inventory struct {
	Kind
	Run       string // lower-case letters and digits
	Namespace string
	Prefix    string            // path prefix
	Own       map[string]string // labels in addition to those of the run
	Pod       map[string]any    // fields of the spec of pods that start
	// The pods' image, and when nodes pull it: Always, IfNotPresent, Never, or empty for the API server's default.
	Image, PullPolicy string
	// Labels and annotations of pods and pod templates only.
	PodLabels, PodAnnotations map[string]string
}

// ObjectName returns the name of object n.
func (i Inventory) ObjectName(n uint64) string { return fmt.Sprintf("knotmeter-%s-%d", i.Run, n) }

// All returns the path of all objects of the kind, in the run's namespace.
func (i Inventory) All() string { return i.Prefix + i.collection(i.Namespace) }

// Path returns the path of object n.
func (i Inventory) Path(n uint64) string { return i.All() + "/" + i.ObjectName(n) }

// Selector returns the URL query that selects the objects of the run.
func (i Inventory) Selector() string { return "labelSelector=" + LabelRun + "%3D" + i.Run }

// Object returns the JSON that creates object n; the fields of spec are added at the top level.
func (i Inventory) Object(n uint64, spec map[string]any) []byte {
	meta := map[string]any{"labels": i.Labels()}
	if i.Name == "Pod" {
		meta = i.PodMeta()
	}
	meta["name"] = i.ObjectName(n)
	o := map[string]any{"apiVersion": i.apiVersion(), "kind": i.Name, "metadata": meta}
	maps.Copy(o, spec)
	text, err := json.Marshal(o)
	if err != nil {
		panic("strings, numbers and maps of them can be written as JSON: " + err.Error())
	}
	return text
}

// Labels returns the labels of every object of the run.
func (i Inventory) Labels() map[string]string {
	l := map[string]string{LabelManaged: ManagedBy, LabelRun: i.Run}
	maps.Copy(l, i.Own)
	return l
}

// PodMeta returns the metadata, without a name, of a pod or a pod template.
func (i Inventory) PodMeta() map[string]any {
	labels := maps.Clone(i.PodLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, i.Labels())
	meta := map[string]any{"labels": labels}
	if len(i.PodAnnotations) > 0 {
		meta["annotations"] = i.PodAnnotations
	}
	return meta
}

// PodSpec returns the spec of a pod that satisfies the restricted Pod Security Standard; a securityContext in i.Pod
// replaces its own, for clusters that choose the user and groups. If label is not empty, only nodes with that label may
// run the pod.
func (i Inventory) PodSpec(label string) map[string]any {
	image := cmp.Or(i.Image, "knotmeter.invalid/none") // never pulled
	spec := map[string]any{
		"automountServiceAccountToken": false, "enableServiceLinks": false,
		"terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
		"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 65532,
			"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"containers": []any{map[string]any{
			"name": "pod", "image": image, "imagePullPolicy": i.PullPolicy, "args": []string{"wait"},
			"resources": map[string]any{"requests": map[string]string{"cpu": "10m", "memory": "16Mi"},
				"limits": map[string]string{"memory": "64Mi"}},
			"securityContext": map[string]any{"allowPrivilegeEscalation": false,
				"readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []string{"ALL"}}},
		}},
	}
	if label != "" {
		spec["nodeSelector"] = map[string]string{label: "true"}
	}
	if security, chosen := i.Pod["securityContext"]; chosen {
		spec["securityContext"] = security
	}
	return spec
}
