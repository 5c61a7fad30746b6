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
	// Resource is a configmap, namespace, service, deployment or pod; empty where the verb says all.
	Resource string `json:"resource,omitempty"`
	Verb     string `json:"verb,omitempty"`    // create, get, …; floor, pod-startup and pod-deletion without a resource
	Objects  int    `json:"objects,omitempty"` // that a list has
	// Consistent lists are read from etcd; others, with resourceVersion=0, from the API server's memory.
	Consistent bool `json:"consistent,omitempty"`
}

// Resources of cases, in the order of the documentation, and what is done with each.
func Resources() []string { return resources }

var resources = []string{"configmap", "namespace", "service", "deployment", "pod"}

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
func Whole() []string { return whole }

var whole = []string{"floor", "pod-startup", "pod-deletion"}

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

// objective is the service level objective that Kubernetes' SIG Scalability has for the call; nil where there is none:
// for watches, deletions of pods until they are gone, and the floor.
func (c Call) objective() *family.Objective {
	switch c.Verb {
	case "create", "update", "patch", "delete", "scale":
		return &mutating
	case "get":
		return &reading
	case "list":
		return &listing
	case "pod-startup":
		return &podStartup
	}
	return nil
}

const (
	slos    = "https://github.com/kubernetes/community/blob/master/sig-scalability/slos/"
	without = "excluding virtual and aggregated resources and Custom Resource Definitions, 99th percentile per " +
		"cluster-day"
	reads = "Latency of processing non-streaming read-only API calls for every (resource, scope) pair, measured as 99th " +
		"percentile over last 5 minutes"
	readsIn = "In default Kubernetes installation, for every (resource, scope) pair, " + without +
		": (a) <= 1s if scope=resource (b) <= 30s otherwise (if scope=namespace or scope=cluster)"
)

var (
	mutating = family.Objective{
		Limit: time.Second, Source: slos + "api_call_latency.md",
		Indicator: "Latency of processing mutating API calls for single objects for every (resource, verb) pair, " +
			"measured as 99th percentile over last 5 minutes",
		Words: "In default Kubernetes installation, for every (resource, verb) pair, " + without + " <= 1s",
	}
	reading = family.Objective{
		Limit: time.Second, Source: slos + "api_call_latency.md", Indicator: reads, Words: readsIn,
	}
	listing    = family.Objective{Limit: 30 * time.Second, Source: reading.Source, Indicator: reads, Words: readsIn}
	podStartup = family.Objective{
		Limit: 5 * time.Second, Source: slos + "pod_startup_latency.md",
		Indicator: "Startup latency of schedulable stateless pods, excluding time to pull images and run init containers, " +
			"measured from pod creation timestamp to when all its containers are reported as started and observed via " +
			"watch, measured as 99th percentile over last 5 minutes",
		Words: "In default Kubernetes installation, 99th percentile per cluster-day <= 5s",
	}
)
