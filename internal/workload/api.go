package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/nearest"
)

// API is the kind of every workload on a Kubernetes API server. Its Call says which.
const API Kind = "api"

// Limits of calls.
const (
	MaxObjects = 5000
	MaxWebRate = 100_000 // requests per second
	MaxClients = 10_000  // of a closed loop, and connections
)

// A Call is what is asked of an API server. Every value of it is comparable.
type Call struct {
	Resource string `json:"resource,omitempty"` // configmap, namespace, service, deployment, pod; empty where the verb says all
	Verb     string `json:"verb,omitempty"`     // create, get, …; floor, pod-startup and pod-deletion without a resource
	Objects  int    `json:"objects,omitempty"`  // that a list has
	// Consistent lists are read from etcd; others, with resourceVersion=0, from the API server's memory.
	Consistent bool `json:"consistent,omitempty"`
}

// Resources of API cases, in the order of the documentation, and what is done with each.
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

// Modifying says whether the call changes the cluster.
func (c Call) Modifying() bool {
	return !slices.Contains([]string{"get", "list", "floor"}, c.Verb)
}

func (c Call) String() string {
	if c.Resource == "" {
		return c.Verb
	}
	return c.Resource + "/" + c.Verb
}

// ParseCall reads the workload of an API case, as String writes it: configmap/create,
// configmap/list:objects=100,consistent=true, floor:rate=50. Every error Is ErrInvalid.
func ParseCall(text string) (Spec, error) {
	name, opts, _ := strings.Cut(text, ":")
	s := Spec{Kind: API}
	if resource, verb, ok := strings.Cut(name, "/"); ok {
		s.Call = Call{Resource: resource, Verb: verb}
		if resource == "" {
			return Spec{}, fmt.Errorf("%w: %q names no resource", ErrInvalid, text)
		}
	} else {
		s.Call.Verb = name
	}
	if err := s.Call.validateName(); err != nil {
		return Spec{}, err
	}
	if err := s.setAll(text, opts); err != nil {
		return Spec{}, err
	}
	return s.Resolved()
}

func (c *Call) fill() {
	if c.Verb == "list" {
		c.Objects = or(c.Objects, 1)
	}
}

func (c Call) validate() error {
	if err := c.validateName(); err != nil {
		return err
	}
	switch {
	case c.Verb != "list" && (c.Objects != 0 || c.Consistent):
		return fmt.Errorf("%w: only lists have objects and consistent", ErrInvalid)
	case c.Objects < 0 || c.Objects > MaxObjects:
		return fmt.Errorf("%w: objects=%d is not from 1 to %d", ErrInvalid, c.Objects, MaxObjects)
	}
	return nil
}

func (c Call) validateName() error {
	switch {
	case c.Resource == "" && !slices.Contains(Whole(), c.Verb):
		return fmt.Errorf("%w: %q is no call; there are RESOURCE/VERB, %s", ErrInvalid, c.Verb, nearest.List(c.Verb, Whole()))
	case c.Resource != "" && !slices.Contains(Resources(), c.Resource):
		return fmt.Errorf("%w: there is no resource %q; there are %s", ErrInvalid, c.Resource, nearest.List(c.Resource, Resources()))
	case c.Resource != "" && !slices.Contains(Verbs(c.Resource), c.Verb):
		return fmt.Errorf("%w: %s has no verb %q; it has %s", ErrInvalid, c.Resource, c.Verb, nearest.List(c.Verb, Verbs(c.Resource)))
	}
	return nil
}

// Beyond these, requests over HTTP need consent: other users of the server may feel them.
const (
	GentleRate    = 100  // requests per second
	GentleClients = 10   // of a closed loop
	GentleObjects = 2000 // that one run makes
	GentlePods    = 30   // that one run starts
)

// Heavy says what of requests over HTTP, with the times of their run, is beyond what no other user should feel; empty if
// nothing is.
func (s Spec) Heavy() string {
	if !s.Kind.Web() {
		return ""
	}
	made := s.Rate * (s.Warmup + s.Duration).Seconds()
	switch {
	case s.Knee > 0:
		return "it looks for the highest rate that the server carries"
	case s.Rate > GentleRate:
		return fmt.Sprintf("%g requests per second are more than %d", s.Rate, GentleRate)
	case s.Flows > GentleClients:
		return fmt.Sprintf("%d clients that ask all the time are more than %d", s.Flows, GentleClients)
	case s.Flows > 0 && s.Call.Verb == "create":
		return "how many objects the clients make is not known before"
	case s.Call.Objects > GentleObjects:
		return fmt.Sprintf("%d objects are more than %d", s.Call.Objects, GentleObjects)
	case strings.HasPrefix(s.Call.Verb, "pod-") && made > GentlePods:
		return fmt.Sprintf("%.0f pods in a run are more than %d", made, GentlePods)
	case slices.Contains([]string{"create", "delete", "watch"}, s.Call.Verb) && made > GentleObjects:
		return fmt.Sprintf("%.0f objects in a run are more than %d", made, GentleObjects)
	}
	return ""
}

// Asked is the workload at another rate, or with so many clients in a closed loop; each 0 leaves it as it is. What
// begins with objects that have to be counted before, and what starts pods, keeps its own pace.
func (s Spec) Asked(rate float64, clients int) Spec {
	counted := s.Kind == API && slices.Contains([]string{"delete", "watch"}, s.Call.Verb)
	switch {
	case !s.Kind.Web() || s.Knee > 0 || strings.HasPrefix(s.Call.Verb, "pod-"):
	case rate > 0 && s.Flows == 0:
		s.Rate = rate
	case clients > 0 && !counted:
		s.Rate, s.Flows = 0, clients
	}
	return s
}

// An Objective is one of the service level objectives that Kubernetes' SIG Scalability has for its API, in its own words. It is
// about the 99th percentile.
type Objective struct {
	Limit     time.Duration
	Indicator string // what is to be measured
	Words     string // what is to be reached
	Source    string
}

// Objective is that of the call; false where there is none: for watches, deletions of pods until they are gone, and the floor.
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
