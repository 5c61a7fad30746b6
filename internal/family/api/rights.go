package api

import "github.com/knotmeter/knotmeter/internal/targets"

var (
	forNamespaces = targets.Purpose{Name: "namespaces", About: "Only for cases of namespaces (api/namespace/...), and " +
		"CLOSE TO CLUSTER-ADMIN: creates, changes and DELETES ANY namespace"}
	forMetrics = targets.Purpose{Name: "metrics", About: "Optional, for cases of the API server: reads its metrics"}
)

// rights returns what a run of the call may do, which includes preparation and cleanup. Every call but the floor
// creates, finds and removes objects.
func (c Call) rights() []targets.Right {
	switch {
	case c.Verb == "floor":
		return nil
	case c.podLifecycle():
		return []targets.Right{{Resource: "pods",
			Verbs: []string{"create", "list", "watch", "delete", "deletecollection"}}}
	}
	own := targets.Right{Resource: c.Resource + "s", Verbs: []string{"create", "list", "delete"}}
	if c.Resource == "namespace" { // many namespaces cannot be removed at once
		own.Purpose = forNamespaces
	} else {
		own.Verbs = append(own.Verbs, "deletecollection")
	}
	switch c.Verb {
	case "update":
		own.Verbs = append(own.Verbs, "get", "update")
	case "get", "watch", "patch":
		own.Verbs = append(own.Verbs, c.Verb)
	}
	rights := []targets.Right{own}
	if c.Resource == "deployment" { // objects that its controllers create are removed too
		rights[0].Group = "apps"
		removal := []string{"list", "delete", "deletecollection"}
		rights = append(rights, targets.Right{Group: "apps", Resource: "replicasets", Verbs: removal},
			targets.Right{Resource: "pods", Verbs: removal})
	}
	if c.Verb == "scale" {
		rights = append(rights, targets.Right{Group: "apps", Resource: "deployments/scale", Verbs: []string{"patch"}})
	}
	if c.Verb != "watch" { // latency histograms exist for requests with a single response
		rights = append(rights, targets.Right{Resource: "/metrics", Verbs: []string{"get"}, Purpose: forMetrics})
	}
	return rights
}
