package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/prose"
)

// MaxObjects is how many objects a list may have, and how many a run may create.
const MaxObjects = 5000

// A Call is a call to an API server. It is comparable with ==.
type Call struct {
	// Resource is configmap, namespace, service, deployment or pod; empty for the verbs in [Whole].
	Resource string `json:"resource,omitempty"`
	Verb     string `json:"verb,omitempty"`    // create, get, …; floor, pod-startup and pod-deletion without a resource
	Objects  int    `json:"objects,omitempty"` // number of objects in a list
	// Consistent lists the objects as they are now, for which the API server asks etcd. Without it, lists have
	// resourceVersion=0 and come from the API server's memory.
	Consistent bool `json:"consistent,omitempty"`
	// Replicas is the number of pods of each Deployment, from 1 to [MaxReplicas], which start; 0: none.
	Replicas int `json:"replicas,omitempty"`
	// Start makes pods fit a node and start there.
	Start bool `json:"start,omitempty"`
}

// MaxReplicas is the highest number of replicas of a Deployment.
const MaxReplicas = 10

// StartedObjects is how many objects a run creates to get, update, patch or scale if their pods start.
const StartedObjects = 4

// Starts reports whether pods of the run start.
func (c Call) Starts() bool { return c.podLifecycle() || c.Replicas > 0 || c.Start }

// podLifecycle reports whether the call is pod-startup or pod-deletion.
func (c Call) podLifecycle() bool { return strings.HasPrefix(c.Verb, "pod-") }

// churns reports whether each call starts or ends pods.
func (c Call) churns() bool {
	return c.podLifecycle() || c.Starts() && slices.Contains([]string{"create", "delete", "watch", "scale"}, c.Verb)
}

// Pods returns how many pods a run with the given number of calls starts, including those that exist before the first
// call.
func (c Call) Pods(calls float64) float64 {
	each := float64(max(c.Replicas, 1))
	switch {
	case !c.Starts():
		return 0
	case c.Verb == "list":
		return float64(c.Objects) * each
	case c.Verb == "scale":
		return StartedObjects*each + calls/2
	case c.churns():
		return calls * each
	}
	return StartedObjects * each
}

// Resources returns the resources of cases, in the order of the documentation.
func Resources() []string { return resources }

var resources = []string{"configmap", "namespace", "service", "deployment", "pod"}

// Verbs returns the verbs of a resource, in the order of the documentation.
func Verbs(resource string) []string {
	verbs := []string{"create", "get", "list", "update", "patch", "delete", "watch"}
	if resource == "deployment" {
		verbs = append(verbs, "scale")
	}
	return verbs
}

// VerbsWithoutResource returns the verbs that have no resource: floor, pod-startup and pod-deletion.
func VerbsWithoutResource() []string { return whole }

var whole = []string{"floor", "pod-startup", "pod-deletion"}

func (c Call) String() string {
	if c.Resource == "" {
		return c.Verb
	}
	return c.Resource + "/" + c.Verb
}

func (c Call) validateName() error {
	switch {
	case c.Resource == "" && !slices.Contains(VerbsWithoutResource(), c.Verb):
		return fmt.Errorf("%q is no call; there are RESOURCE/VERB, %s", c.Verb, prose.Choices(c.Verb, VerbsWithoutResource()))
	case c.Resource != "" && !slices.Contains(Resources(), c.Resource):
		return fmt.Errorf("there is no resource %q; there are %s", c.Resource, prose.Choices(c.Resource, Resources()))
	case c.Resource != "" && !slices.Contains(Verbs(c.Resource), c.Verb):
		return fmt.Errorf("%s has no verb %q; it has %s", c.Resource, c.Verb, prose.Choices(c.Verb, Verbs(c.Resource)))
	}
	return nil
}

// objective returns the service level objective of Kubernetes' SIG Scalability for the call, nil if there is none: for
// watch, pod-deletion and floor.
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
