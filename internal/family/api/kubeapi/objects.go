package kubeapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
)

// counter is the annotation that updates change.
const counter = "knotmeter.dev/n"

// body returns the fields of an object besides its metadata, which o.Object adds. They are few, so that the server's
// work is measured and not the encoding of a large object.
func body(o apiserver.RunObjects, c api.Call, node string) map[string]any {
	spec := o.PodSpec(apiserver.LabelUnschedulable)
	if c.Starts() {
		spec = startableSpec(o, node)
	}
	switch o.Kind.Name {
	case "ConfigMap":
		return map[string]any{"data": map[string]string{"key": strings.Repeat("x", 64)}}
	case "Service":
		return map[string]any{"spec": map[string]any{
			"selector": o.Labels(), "ports": []any{map[string]any{"port": 80, "protocol": "TCP"}},
		}}
	case "Deployment":
		delete(spec, "restartPolicy") // a Deployment allows only Always, the default
		return map[string]any{"spec": map[string]any{
			"replicas": c.Replicas, "selector": map[string]any{"matchLabels": o.Labels()},
			"template": map[string]any{"metadata": o.PodMeta(), "spec": spec},
		}}
	case "Pod":
		return map[string]any{"spec": spec}
	}
	return nil
}

// startableSpec returns the spec of a pod that starts, on the node if one is given.
func startableSpec(o apiserver.RunObjects, node string) map[string]any {
	spec := o.PodSpec("")
	if node != "" {
		// A nodeSelector and not nodeName, because the scheduler's work is part of a start.
		spec["nodeSelector"] = map[string]string{"kubernetes.io/hostname": node}
	}
	maps.Copy(spec, o.Pod)
	return spec
}

// updateTemplate turns an object as the server stores it into a template for updates: without its version, so that
// updates do not conflict, and with the annotation [counter]. It returns the JSON before and after the counter's value.
func updateTemplate(text []byte) (before, after []byte, err error) {
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
	const placeholder = "\x00" // encoded as \u0000, which no value of the server has
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

// initialObjects returns how many objects a run creates before its first call. calls is the number of planned calls.
func initialObjects(c api.Call, calls uint64) uint64 {
	some := uint64(20)
	if c.Starts() {
		some = api.StartedObjects
	}
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
