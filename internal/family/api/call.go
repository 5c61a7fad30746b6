package api

import (
	"fmt"
	"slices"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// MaxObjects is how many objects a list may have, and a run may make.
const MaxObjects = 5000

// A Call is what is asked of an API server. Every value of it is comparable.
type Call struct {
	Resource string `json:"resource,omitempty"` // configmap, namespace, service, deployment, pod; empty where the verb says all
	Verb     string `json:"verb,omitempty"`     // create, get, …; floor, pod-startup and pod-deletion without a resource
	Objects  int    `json:"objects,omitempty"`  // that a list has
	// Consistent lists are read from etcd; others, with resourceVersion=0, from the API server's memory.
	Consistent bool `json:"consistent,omitempty"`
}

// Resources of cases, in the order of the documentation, and what is done with each.
func Resources() []string {
	return []string{"configmap", "namespace", "service", "deployment", "pod"}
}

// Verbs of a resource, in the order of the documentation.
func Verbs(resource string) []string {
	verbs := []string{"create", "get", "list", "update", "patch", "delete", "watch"}
	if resource == "deployment" {
		verbs = append(verbs, "scale")
	}
	return verbs
}

// Whole are the calls that are about no single resource: the round trip without any work, and how
// long pods take to start and to go.
func Whole() []string { return []string{"floor", "pod-startup", "pod-deletion"} }

func (c Call) String() string {
	if c.Resource == "" {
		return c.Verb
	}
	return c.Resource + "/" + c.Verb
}

func (c Call) validate() error {
	if err := c.validateName(); err != nil {
		return err
	}
	switch {
	case c.Verb != "list" && (c.Objects != 0 || c.Consistent):
		return fmt.Errorf("%w: only lists have objects and consistent", family.ErrInvalid)
	case c.Objects < 0 || c.Objects > MaxObjects:
		return fmt.Errorf("%w: objects=%d is not from 1 to %d", family.ErrInvalid, c.Objects, MaxObjects)
	}
	return nil
}

func (c Call) validateName() error {
	switch {
	case c.Resource == "" && !slices.Contains(Whole(), c.Verb):
		return fmt.Errorf("%w: %q is no call; there are RESOURCE/VERB, %s",
			family.ErrInvalid, c.Verb, prose.Choices(c.Verb, Whole()))
	case c.Resource != "" && !slices.Contains(Resources(), c.Resource):
		return fmt.Errorf("%w: there is no resource %q; there are %s",
			family.ErrInvalid, c.Resource, prose.Choices(c.Resource, Resources()))
	case c.Resource != "" && !slices.Contains(Verbs(c.Resource), c.Verb):
		return fmt.Errorf("%w: %s has no verb %q; it has %s",
			family.ErrInvalid, c.Resource, c.Verb, prose.Choices(c.Verb, Verbs(c.Resource)))
	}
	return nil
}

// An Objective is one of the service level objectives that Kubernetes' SIG Scalability has for its API, in its own
// words. It is about the 99th percentile.
type Objective struct {
	Limit     time.Duration
	Indicator string // what is to be measured
	Words     string // what is to be reached
	Source    string
}

// Objective is that of the call; false where there is none: for watches, deletions of pods until they are gone, and the
// floor.
func (c Call) Objective() (Objective, bool) {
	const (
		source  = "https://github.com/kubernetes/community/blob/master/sig-scalability/slos/"
		without = "excluding virtual and aggregated resources and Custom Resource Definitions, 99th percentile per cluster-day"
	)
	switch c.Verb {
	case "create", "update", "patch", "delete", "scale":
		return Objective{
			Limit: time.Second, Source: source + "api_call_latency.md",
			Indicator: "Latency of processing mutating API calls for single objects for every (resource, verb) pair, measured as 99th percentile over last 5 minutes",
			Words:     "In default Kubernetes installation, for every (resource, verb) pair, " + without + " <= 1s",
		}, true
	case "get", "list":
		o := Objective{
			Limit: time.Second, Source: source + "api_call_latency.md",
			Indicator: "Latency of processing non-streaming read-only API calls for every (resource, scope) pair, measured as 99th percentile over last 5 minutes",
			Words:     "In default Kubernetes installation, for every (resource, scope) pair, " + without + ": (a) <= 1s if scope=resource (b) <= 30s otherwise (if scope=namespace or scope=cluster)",
		}
		if c.Verb == "list" {
			o.Limit = 30 * time.Second
		}
		return o, true
	case "pod-startup":
		return Objective{
			Limit: 5 * time.Second, Source: source + "pod_startup_latency.md",
			Indicator: "Startup latency of schedulable stateless pods, excluding time to pull images and run init containers, measured from pod creation timestamp to when all its containers are reported as started and observed via watch, measured as 99th percentile over last 5 minutes",
			Words:     "In default Kubernetes installation, 99th percentile per cluster-day <= 5s",
		}, true
	}
	return Objective{}, false
}
