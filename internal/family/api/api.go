// Package api is the family of calls to a Kubernetes API server, one resource and one verb at a time.
//
// What the cases measure, and what they do not:
//
//   - configmap/* measures the API server and etcd alone: no controller, scheduler or node acts on ConfigMaps. It does
//     not measure admission webhooks for other resources.
//   - namespace/*, service/* and deployment/* measure how soon the API server answers while controllers act on the
//     calls: finalizers, addresses, ReplicaSets. They do not measure when the controllers are done.
//   - pod/* measures the same for pods that fit no node. It does not measure how long pods take to start.
//   - deployment/*:replicas=N and pod/*:start=true measure the same while pods start, or run, on a node.
//   - list measures reading many objects: from the API server's memory or, with consistent=true, as they are now.
//   - watch measures how long after its request a watcher sees a new object.
//   - floor measures the round trip with hardly any work (GET /version); no other case can be faster.
//   - pod-startup measures how long a pod takes from the request until it is seen to be ready, with an image that is on
//     the node; it does not measure pulling images. pod-deletion measures how soon a deleted pod is gone.
//
// Calls are made one by one at planned times, at a rate that does not disturb a healthy server. None measures the
// server's capacity; knee= does.
package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/parameter"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// path is the first part of the names of all cases.
const path = "api"

// Family returns the family of calls to an API server, measured by the tools.
func Family(tools ...family.Tool) family.Family {
	get := Workload{Call{Resource: "configmap", Verb: "get"}, family.Pace{Rate: family.DefaultRate}}
	return family.Family{
		Name: "api", Paths: []string{path}, Suites: suites(), Tools: tools,
		Kinds:      []family.Sample{{Name: "api", Workload: get}},
		Offers:     []family.Sample{{Name: "the API server", Workload: get}},
		Parse:      func(_, name, _ string) (family.Workload, error) { return Parse(name) },
		Parameters: family.ParametersOf(parameters),
	}
}

// A Workload is a call that is repeated at a pace. It is comparable with ==.
type Workload struct {
	Call
	family.Pace
}

// objectsTime limits the time of a run outside of its windows: creating and removing objects, starting pods.
const objectsTime = 3 * time.Minute

// The usual time of a run outside of its windows.
const (
	usualObjects = 500 * time.Millisecond // without pods that start
	usualPods    = 3 * time.Second        // with pods that start
)

// A run above these limits may disturb other users of the server and needs consent.
const (
	gentleObjects = 2000 // objects created by a run
	gentlePods    = 30   // pods started by a run
)

// maxChurn is the highest pod churn, per second, that Kubernetes' own objectives cover.
const maxChurn = 20

// parameters are those of all calls, in the order of canonical names.
var parameters = append(parameter.Schema[Workload]{
	parameter.New(parameter.Parameter[Workload]{
		Name: "objects", Of: "`list`", Has: func(w Workload) bool { return w.Verb == "list" }, Default: "1",
		Help: "objects that are listed",
	}, func(w *Workload) *int { return &w.Objects }, parameter.Int(1, MaxObjects)),
	parameter.New(parameter.Parameter[Workload]{
		Name: "consistent", Of: "`list`", Has: func(w Workload) bool { return w.Verb == "list" }, Default: "false",
		Help: "lists the objects as they are now, for which the API server asks etcd; else they come from its memory " +
			"(`resourceVersion=0`)",
	}, func(w *Workload) *bool { return &w.Consistent }, parameter.Switch("false", "true")),
	parameter.New(parameter.Parameter[Workload]{
		Name: "replicas", Of: "`deployment`", Has: func(w Workload) bool { return w.Resource == "deployment" },
		Help: "pods of each Deployment, which start (default: none)",
	}, func(w *Workload) *int { return &w.Replicas }, parameter.Int(1, MaxReplicas)),
	parameter.New(parameter.Parameter[Workload]{
		Name: "start", Of: "`pod`", Has: func(w Workload) bool { return w.Resource == "pod" }, Default: "false",
		Help: "the pods fit a node and start there",
	}, func(w *Workload) *bool { return &w.Start }, parameter.Switch("false", "true")),
}, family.PaceParameters(func(w *Workload) *family.Pace { return &w.Pace }, Workload.defaultPace,
	"20; 1 for calls that start pods")...)

// Parse returns the workload with a name such as configmap/create, configmap/list:objects=100,consistent=true or
// floor:rate=50.
func Parse(text string) (Workload, error) {
	name, _, _ := strings.Cut(text, ":")
	var w Workload
	if resource, verb, is := strings.Cut(name, "/"); is {
		w.Call = Call{Resource: resource, Verb: verb}
		if resource == "" {
			return Workload{}, fmt.Errorf("%q names no resource", text)
		}
	} else {
		w.Verb = name
	}
	if err := w.validateName(); err != nil {
		return Workload{}, err
	}
	if err := parameters.Parse(&w, text); err != nil {
		return Workload{}, err
	}
	return w.Resolved()
}

// Resolved returns the workload with its defaults, or an error that names the value that is out of range.
func (w Workload) Resolved() (Workload, error) {
	parameters.Fill(&w)
	return w, w.validate()
}

// defaultPace returns the pace of a workload without parameters. Calls that start or end pods are made only once per
// second, because starting pods delays the start of others.
func (w Workload) defaultPace() family.Pace {
	if w.churns() {
		return family.Pace{Rate: 1}
	}
	return family.Pace{Rate: family.DefaultRate}
}

func (w Workload) validate() error {
	if err := w.validateName(); err != nil {
		return err
	}
	if err := w.Pace.Validate("api"); err != nil {
		return err
	}
	if w.churns() && (w.Rate == 0 || w.Rate > maxChurn) {
		return fmt.Errorf("%s has a rate up to %d per second, the churn that Kubernetes' own objectives are about",
			w.Call, maxChurn)
	}
	return parameters.Check(w)
}

// Title returns the workload's part of its case's name.
func (w Workload) Title() string { return parameters.Text(w.Call.String(), w) }

// groups holds the headings under which reports show the calls of a resource together.
var groups = map[string]string{"configmap": "ConfigMaps", "namespace": "Namespaces", "service": "Services",
	"deployment": "Deployments", "pod": "Pods"}

// subject returns a description of the call for readers: "API: list 100 configmaps, consistent".
func (w Workload) subject() string {
	switch w.Verb {
	case "floor":
		return "API: GET /version"
	case "pod-startup":
		return "Pod, from request to ready"
	case "pod-deletion":
		return "Pod, from deletion to gone"
	}
	words := "API: " + w.Verb + " " + w.Resource
	if w.Objects > 1 {
		words = fmt.Sprintf("API: %s %d %ss", w.Verb, w.Objects, w.Resource)
	}
	if w.Consistent {
		words += ", consistent"
	}
	if w.Replicas > 0 {
		words += fmt.Sprintf(", replicas: %d", w.Replicas)
	}
	if w.Start {
		words += ", starting"
	}
	return words
}

func (w Workload) String() string { return path + "/" + w.Title() }

// Traits returns the traits of the workload.
func (w Workload) Traits() family.Traits {
	usual := usualObjects
	if w.Starts() {
		usual = usualPods
	}
	return family.Traits{
		Path: path, Kind: w.Title(), Metric: w.Pace.Metric(),
		Words: result.Words{Subject: w.subject(), Quantity: w.Pace.Quantity(),
			Group: groups[w.Resource], Member: strings.TrimPrefix(w.Title(), w.Resource+"/")},
		Limits: w.Pace.Limits(objectsTime), Alone: w.Pace.Alone(), Nominal: w.Pace.Nominal(usual),
		Needs: targets.Placement{AsksAPI: true, Rights: w.rights()},
	}
}

// Disturbs returns the reason why the workload may disturb other users of the server, empty if there is none.
func (w Workload) Disturbs(t family.Times) string {
	calls := w.Due(t)
	switch why := w.Pace.Disturbs(); {
	case why != "":
		return why
	case w.Clients > 0 && w.Verb == "create":
		return "how many objects the clients make is not known before"
	case w.Objects > gentleObjects:
		return fmt.Sprintf("%d objects are more than %d", w.Objects, gentleObjects)
	case w.Pods(calls) > gentlePods:
		return fmt.Sprintf("%.0f pods in a run are more than %d", w.Pods(calls), gentlePods)
	case slices.Contains([]string{"create", "delete", "watch"}, w.Verb) && calls > gentleObjects:
		return fmt.Sprintf("%.0f objects in a run are more than %d", calls, gentleObjects)
	}
	return ""
}

// Sends returns the zero Sent: the target determines the API server.
func (w Workload) Sends() family.Sent { return family.Sent{To: host.Destination{}} }

// At returns the workload at another rate or number of clients. Workloads that start or end pods stay as they are, and
// delete and watch stay open loops, because a run must know the number of their calls beforehand.
func (w Workload) At(rate float64, clients int) family.Workload {
	counted := slices.Contains([]string{"delete", "watch"}, w.Verb)
	switch {
	case w.churns():
		return w
	case counted:
		clients = 0
	}
	w.Pace = w.Pace.At(rate, clients)
	return w
}

// HTTPTraits returns the pace, the objective, and the metrics in addition to latency.
func (w Workload) HTTPTraits() family.HTTPTraits {
	a := family.HTTPTraits{Pace: w.Pace}
	if w.Rate > 0 {
		// The objective is for open loops: a closed loop hardly samples stalls of the server, and a search overloads
		// it.
		a.Objective = w.objective()
	}
	switch w.Verb {
	case "watch", "pod-deletion":
		a.Parts = []string{metric.Request}
	case "pod-startup":
		a.Parts = []string{metric.Request,
			metric.Created, metric.Scheduled, metric.Initial, metric.Started, metric.Ready}
		a.Values = []string{metric.PodsPerMinute}
	}
	return a
}

// Verb is the verb of requests to the agent; their body is a [Run].
const Verb = "api"

// A Run is the body of a request to the agent.
type Run struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Workload Workload      `json:"workload"`
	Times    family.Times  `json:"times"`
}

// Redacted returns the run without its secrets, for the results directory.
func (r Run) Redacted() any {
	r.Endpoint = r.Endpoint.Redacted()
	return r
}

// AgentRequest returns the verb and body of the request to an agent. The error wraps result.ErrNotSupported if the
// endpoint lacks what the workload needs.
func (w Workload) AgentRequest(
	e host.Endpoint, t family.Times, _ family.Environment,
) (verb string, body any, err error) {
	if why := e.Lacks[forNamespaces.Name]; why != "" && w.Resource == "namespace" {
		return "", nil, result.NotSupported(why)
	}
	return Verb, Run{Endpoint: e, Workload: w, Times: t}, nil
}
