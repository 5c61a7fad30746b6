package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Labels of every object that a run creates: LabelManaged, with the value ManagedBy, finds all objects of Knotmeter,
// LabelRun those of one run.
const (
	LabelManaged = "app.kubernetes.io/managed-by"
	ManagedBy    = "knotmeter"
	LabelRun     = "knotmeter.dev/run"
)

// LabelUnschedulable is a label that no node has. A pod whose node selector has it never starts, and so costs work of
// the API server and etcd only.
const LabelUnschedulable = "knotmeter.dev/nowhere"

// A Kind is a type of Kubernetes resource: what its URLs, and the kind and apiVersion of its objects, are made of.
type Kind struct {
	Group, Version, Plural, Name string
	Namespaced                   bool
}

// KindOf returns the kind of a resource by its singular name, the zero Kind if it is unknown. An empty name gives
// configmap: some measured calls are about no resource, and never use the kind.
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

// owned returns the kinds of the objects that controllers create for objects of kind k, with the same labels, and whose
// end the client must await. The garbage collector removes the EndpointSlices of a Service.
func (k Kind) owned() []Kind {
	if k.Name == "Deployment" {
		return []Kind{{"apps", "v1", "replicasets", "ReplicaSet", true}, KindOf("pod")}
	}
	return nil
}

// collection returns the path of all objects of kind k; in the namespace, if k is namespaced.
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

// RunObjects describes the objects of one kind that a run creates: their names, paths, labels and JSON.
type RunObjects struct {
	Kind
	Run       string // ID of the run: lower-case letters and digits
	Namespace string
	Prefix    string            // of the paths, before /api, if the server is behind a proxy
	Own       map[string]string // labels in addition to those of the run
	// Extra fields of the spec of pods, such as tolerations. PodSpec uses only the securityContext; callers whose pods
	// start copy the others.
	Pod map[string]any
	// The pods' image, and when nodes pull it: Always, IfNotPresent, Never, or empty for the API server's default.
	Image, PullPolicy string
	// Labels and annotations of pods and pod templates only.
	PodLabels, PodAnnotations map[string]string
}

// ObjectName returns the name of object n.
func (o RunObjects) ObjectName(n uint64) string { return fmt.Sprintf("knotmeter-%s-%d", o.Run, n) }

// All returns the path of all objects of the kind; in the run's namespace, if the kind is namespaced.
func (o RunObjects) All() string { return o.Prefix + o.collection(o.Namespace) }

// Path returns the path of object n.
func (o RunObjects) Path(n uint64) string { return o.All() + "/" + o.ObjectName(n) }

// Selector returns the URL query that selects the objects of the run.
func (o RunObjects) Selector() string { return "labelSelector=" + LabelRun + "%3D" + o.Run }

// Object returns the JSON that creates object n; fields, such as spec or data, are added at the top
// level.
func (o RunObjects) Object(n uint64, fields map[string]any) []byte {
	meta := map[string]any{"labels": o.Labels()}
	if o.Kind.Name == "Pod" {
		meta = o.PodMeta()
	}
	meta["name"] = o.ObjectName(n)
	object := map[string]any{"apiVersion": o.apiVersion(), "kind": o.Kind.Name, "metadata": meta}
	maps.Copy(object, fields)
	text, err := json.Marshal(object)
	if err != nil {
		panic("an object of plain values cannot be written as JSON: " + err.Error())
	}
	return text
}

// Labels returns the labels of every object of the run.
func (o RunObjects) Labels() map[string]string {
	l := map[string]string{LabelManaged: ManagedBy, LabelRun: o.Run}
	maps.Copy(l, o.Own)
	return l
}

// PodMeta returns the metadata, without a name, of a pod or a pod template.
func (o RunObjects) PodMeta() map[string]any {
	labels := maps.Clone(o.PodLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, o.Labels())
	meta := map[string]any{"labels": labels}
	if len(o.PodAnnotations) > 0 {
		meta["annotations"] = o.PodAnnotations
	}
	return meta
}

const (
	noImage     = "knotmeter.invalid/none" // for pods that never start; the name can't be resolved, so nothing is pulled
	waitCommand = "wait"                   // of the agent's program, which waits until the pod is stopped
)

// PodSpec returns the spec of a pod that satisfies the restricted Pod Security Standard. A securityContext in o.Pod
// replaces its own, for clusters such as OpenShift that choose the user and groups. If label is not empty, only nodes
// on which that label is "true" may run the pod.
func (o RunObjects) PodSpec(label string) map[string]any {
	image := cmp.Or(o.Image, noImage)
	spec := map[string]any{
		"automountServiceAccountToken": false, "enableServiceLinks": false,
		"terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
		"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 65532,
			"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"containers": []any{map[string]any{
			"name": "pod", "image": image, "imagePullPolicy": o.PullPolicy, "args": []string{waitCommand},
			"resources": map[string]any{"requests": map[string]string{"cpu": "10m", "memory": "16Mi"},
				"limits": map[string]string{"memory": "64Mi"}},
			"securityContext": map[string]any{"allowPrivilegeEscalation": false,
				"readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []string{"ALL"}}},
		}},
	}
	if label != "" {
		spec["nodeSelector"] = map[string]string{label: "true"}
	}
	if security, chosen := o.Pod["securityContext"]; chosen {
		spec["securityContext"] = security
	}
	return spec
}
