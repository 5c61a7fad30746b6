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

// body is what an object of the kind has besides its name: little, so that the server's work is measured
// and not the encoding of a large object.
func body(i apiserver.Inventory, c api.Call, node string) map[string]any {
	spec := i.PodSpec(apiserver.UnschedulableLabel)
	if c.Starts() {
		spec = startable(i, node)
	}
	switch i.Name {
	case "ConfigMap":
		return map[string]any{"data": map[string]string{"key": strings.Repeat("x", 64)}}
	case "Service":
		return map[string]any{"spec": map[string]any{
			"selector": i.Labels(), "ports": []any{map[string]any{"port": 80, "protocol": "TCP"}},
		}}
	case "Deployment":
		return map[string]any{"spec": map[string]any{
			"replicas": c.Replicas, "selector": map[string]any{"matchLabels": i.Labels()},
			"template": map[string]any{"metadata": i.PodMeta(), "spec": always(spec)},
		}}
	case "Pod":
		return map[string]any{"spec": spec}
	}
	return nil
}

// startable is the spec of a pod that starts, on a node if one is named.
func startable(i apiserver.Inventory, node string) map[string]any {
	spec := i.PodSpec("")
	if node != "" {
		// By a label and not by its name: the scheduler's work is part of a start.
		spec["nodeSelector"] = map[string]string{"kubernetes.io/hostname": node}
	}
	maps.Copy(spec, i.Pod)
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
