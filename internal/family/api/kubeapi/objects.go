package kubeapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/apiserver"
	"github.com/knotmeter/knotmeter/internal/family/api"
)

// counter is the annotation that updates change.
const counter = "knotmeter.dev/n"

// body is what an object of the kind has besides its name: little, so that the server's work is measured
// and not the encoding of a large object.
func body(i apiserver.Inventory) map[string]any {
	switch i.Name {
	case "ConfigMap":
		return map[string]any{"data": map[string]string{"key": strings.Repeat("x", 64)}}
	case "Service":
		return map[string]any{"spec": map[string]any{
			"selector": i.Labels(), "ports": []any{map[string]any{"port": 80, "protocol": "TCP"}},
		}}
	case "Deployment":
		return map[string]any{"spec": map[string]any{
			"replicas": 0, "selector": map[string]any{"matchLabels": i.Labels()},
			"template": map[string]any{"metadata": i.PodMeta(), "spec": always(i.PodSpec(apiserver.Nowhere))},
		}}
	case "Pod":
		return map[string]any{"spec": i.PodSpec(apiserver.Nowhere)}
	}
	return nil
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
