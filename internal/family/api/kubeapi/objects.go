package kubeapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/api"
)

// Labels of everything that a run makes: by the first all of Knotmeter's is found, by the second what
// belongs to one run.
const (
	LabelManaged = "app.kubernetes.io/managed-by"
	ManagedBy    = "knotmeter"
	LabelRun     = "knotmeter.dev/run"
)

// nowhere is a label that no node has, so that a pod that asks for it starts nowhere and costs the API
// server and etcd alone.
const nowhere = "knotmeter.dev/nowhere"

// counter is the annotation that updates change.
const counter = "knotmeter.dev/n"

// A kind is a resource with what its URLs and objects are made of.
type kind struct {
	group, version, plural, name string
	namespaced                   bool
}

// kindOf is the kind of a resource of [api.Resources]; without one it is a ConfigMap, of which nothing is made.
func kindOf(resource string) kind { return kinds[cmp.Or(resource, "configmap")] }

var kinds = map[string]kind{
	"configmap":  {"", "v1", "configmaps", "ConfigMap", true},
	"namespace":  {"", "v1", "namespaces", "Namespace", false},
	"service":    {"", "v1", "services", "Service", true},
	"deployment": {"apps", "v1", "deployments", "Deployment", true},
	"pod":        {"", "v1", "pods", "Pod", true},
}

// makes are the kinds that controllers make of it, with its labels.
func (k kind) makes() []kind {
	if k.name == "Deployment" {
		return []kind{{"apps", "v1", "replicasets", "ReplicaSet", true}, kindOf("pod")}
	}
	return nil
}

// collection is the path of all objects of a kind.
func (k kind) collection(namespace string) string {
	path := "/api/" + k.version
	if k.group != "" {
		path = "/apis/" + k.group + "/" + k.version
	}
	if k.namespaced {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.plural
}

func (k kind) apiVersion() string { return strings.TrimPrefix(k.group+"/"+k.version, "/") }

// An inventory names the objects of one run.
type inventory struct {
	kind
	run       string // lower-case letters and digits
	namespace string
	prefix    string            // of all paths
	own       map[string]string // labels beside those of the run
	pod       map[string]any    // fields of the spec of pods that start
	// Labels and annotations of pods and their templates alone.
	podLabels, podAnnotations map[string]string
}

func (i inventory) objectName(n uint64) string { return fmt.Sprintf("knotmeter-%s-%d", i.run, n) }

// all is the path of all objects of the kind, in the run's namespace.
func (i inventory) all() string { return i.prefix + i.collection(i.namespace) }

func (i inventory) path(n uint64) string { return i.all() + "/" + i.objectName(n) }

// selector finds the objects of the run.
func (i inventory) selector() string { return "labelSelector=" + LabelRun + "%3D" + i.run }

// object is object n as it is created.
func (i inventory) object(n uint64, spec map[string]any) []byte {
	meta := map[string]any{"labels": i.labels()}
	if i.name == "Pod" {
		meta = i.podMeta()
	}
	meta["name"] = i.objectName(n)
	o := map[string]any{"apiVersion": i.apiVersion(), "kind": i.name, "metadata": meta}
	maps.Copy(o, spec)
	text, err := json.Marshal(o)
	if err != nil {
		panic("strings, numbers and maps of them can be written as JSON: " + err.Error())
	}
	return text
}

func (i inventory) labels() map[string]string {
	l := map[string]string{LabelManaged: ManagedBy, LabelRun: i.run}
	maps.Copy(l, i.own)
	return l
}

// podMeta are the labels and annotations of a pod, or of a template of pods.
func (i inventory) podMeta() map[string]any {
	labels := maps.Clone(i.podLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, i.labels())
	meta := map[string]any{"labels": labels}
	if len(i.podAnnotations) > 0 {
		meta["annotations"] = i.podAnnotations
	}
	return meta
}

// body is what an object of the kind has besides its name: little, so that the server's work is measured
// and not the encoding of a large object.
func (i inventory) body(image string) map[string]any {
	switch i.name {
	case "ConfigMap":
		return map[string]any{"data": map[string]string{"key": strings.Repeat("x", 64)}}
	case "Service":
		return map[string]any{"spec": map[string]any{
			"selector": i.labels(), "ports": []any{map[string]any{"port": 80, "protocol": "TCP"}},
		}}
	case "Deployment":
		return map[string]any{"spec": map[string]any{
			"replicas": 0, "selector": map[string]any{"matchLabels": i.labels()},
			"template": map[string]any{"metadata": i.podMeta(), "spec": always(i.podSpec(image, nowhere))},
		}}
	case "Pod":
		return map[string]any{"spec": i.podSpec(image, nowhere)}
	}
	return nil
}

// podSpec is that of pods whose user and groups may be the cluster's to choose.
func (i inventory) podSpec(image, label string) map[string]any {
	spec := podSpec(image, label)
	if security, chosen := i.pod["securityContext"]; chosen {
		spec["securityContext"] = security
	}
	return spec
}

// podSpec is a pod that satisfies the restricted Pod Security Standard; with a label for nodes that none has it
// starts nowhere.
func podSpec(image, label string) map[string]any {
	if image == "" {
		image = "knotmeter.invalid/none" // it is never pulled
	}
	spec := map[string]any{
		"automountServiceAccountToken": false, "enableServiceLinks": false,
		"terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
		"securityContext": map[string]any{"runAsNonRoot": true, "runAsUser": 65532,
			"seccompProfile": map[string]any{"type": "RuntimeDefault"}},
		"containers": []any{map[string]any{
			"name": "pod", "image": image, "imagePullPolicy": "IfNotPresent", "args": []string{"wait"},
			"resources": map[string]any{"requests": map[string]string{"cpu": "10m", "memory": "16Mi"},
				"limits": map[string]string{"memory": "64Mi"}},
			"securityContext": map[string]any{"allowPrivilegeEscalation": false,
				"readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []string{"ALL"}}},
		}},
	}
	if label != "" {
		spec["nodeSelector"] = map[string]string{label: "true"}
	}
	return spec
}

// always is the only policy that a Deployment's pods can have.
func always(spec map[string]any) map[string]any {
	delete(spec, "restartPolicy")
	return spec
}

// updated is an object as the server has it, made ready to be written again and again: without a version, so that
// no writer conflicts with another, and with the counter to be changed. The two parts are what is before and after its
// value.
func updated(text []byte) (before, after []byte, err error) {
	var o map[string]any
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, nil, fmt.Errorf("an object of the API server: %w", err)
	}
	meta, ok := o["metadata"].(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("an object of the API server has no metadata")
	}
	delete(meta, "resourceVersion")
	delete(meta, "managedFields")
	delete(o, "status")
	const placeholder = "\x00" // written as \u0000, which no value of the server's has
	annotations, ok := meta["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
		meta["annotations"] = annotations
	}
	annotations[counter] = placeholder
	whole, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	first, last, ok := strings.Cut(string(whole), `\u0000`)
	if !ok {
		return nil, nil, fmt.Errorf("an object of the API server can't be changed")
	}
	return []byte(first), []byte(last), nil
}

// objects is how many a run begins with, of which it has planned so many calls.
func objects(c api.Call, calls uint64) uint64 {
	const some = 20
	switch c.Verb {
	case "create", "watch":
		return 0
	case "list":
		return uint64(c.Objects)
	case "delete":
		return calls
	}
	return min(some, max(calls, 1))
}
