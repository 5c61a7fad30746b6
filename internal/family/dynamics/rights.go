package dynamics

import "github.com/knotmeter/knotmeter/internal/targets"

// Rights of changes: on the object that a trial changes, and on the pods that show the effect. Trials remove what they
// create.
var (
	removal   = []string{"list", "delete", "deletecollection"}
	pods      = targets.Right{Resource: "pods", Verbs: append([]string{"create", "watch"}, removal...)}
	services  = targets.Right{Resource: "services", Verbs: append([]string{"create"}, removal...)}
	endpoints = targets.Right{Group: "discovery.k8s.io", Resource: "endpointslices", Verbs: []string{"list", "watch"}}

	podRights    = []targets.Right{pods}
	policyRights = []targets.Right{pods, {Group: "networking.k8s.io", Resource: "networkpolicies", Verbs: pods.Verbs}}
	// endpointRights include statuses, by which a trial makes the only pod of a Service ready, or not.
	endpointRights = []targets.Right{pods, {Resource: "pods/status", Verbs: []string{"patch"}}, services, endpoints}
	serviceRights  = []targets.Right{pods, services, endpoints}
	rolloutRights  = []targets.Right{pods, services,
		{Group: "apps", Resource: "deployments", Verbs: append([]string{"patch"}, pods.Verbs...)},
		{Group: "apps", Resource: "replicasets", Verbs: removal}}
)
