// Package api is the family of what is asked of a Kubernetes API server, one resource and one verb at a time.
//
// What the cases tell, and what they do not:
//
//   - configmap/* tells what the API server and etcd take by themselves: no controller, no scheduler and no node has
//     to do with ConfigMaps. It does not tell what admission webhooks for other resources take.
//   - namespace/*, service/* and deployment/* tell how soon the API server answers while controllers work on what was
//     asked: finalizers, addresses, ReplicaSets. They do not tell when the controllers are done.
//   - pod/* tells the same of pods that no node can have. It does not tell how long pods take to start.
//   - deployment/*:replicas=N and pod/*:start=true tell it while pods start, or run, on a node.
//   - list tells what reading takes that is not of one object: from the API server's memory, or consistent=true as of
//     now.
//   - watch tells how long after its request those who watch learn of a new object.
//   - floor tells the round trip with hardly any work (GET /version); the others are not below it.
//   - pod-startup tells how long a pod takes from the request until it is seen to be ready, of an image that is on
//     the node; not what pulling images takes. pod-deletion tells how long one takes to be gone.
//
// All are asked one by one at planned times, at a rate that a healthy server does not feel; none tells what it can
// carry (knee= does).
package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// path is what the names of cases begin with.
const path = "api"

// Family is the family of calls of an API server, as the tools measure them.
func Family(tools ...family.Tool) family.Family {
	get := Workload{Call{Resource: "configmap", Verb: "get"}, family.Pace{Rate: family.DefaultRate}}
	return family.Family{
		Name: "api", Paths: []string{path}, Suites: suites(), Tools: tools,
		Kinds:  []family.Sample{{Name: "api", Workload: get}},
		Offers: []family.Sample{{Name: "the API server", Workload: get}},
		Parse:  func(_, name, _ string) (family.Workload, error) { return Parse(name) },
	}
}

// A Workload is a call, again and again.
type Workload struct {
	Call
	family.Pace
}

// What a run needs time for besides: the objects that it begins with, those that it removes, pods that start.
const objectsTime = 3 * time.Minute

// What that usually takes.
const (
	usualObjects = 500 * time.Millisecond
	usualPods    = 3 * time.Second
)

// Beyond these, a run needs consent: other users of the server may feel it.
const (
	gentleObjects = 2000 // that one run makes
	gentlePods    = 30   // that one run starts
)

// churn is the most pods per second that Kubernetes' own objectives are about.
const churn = 20

// Parse reads what is asked, as Title writes it: configmap/create, configmap/list:objects=100,consistent=true,
// floor:rate=50. Every error Is family.ErrInvalid.
func Parse(text string) (Workload, error) {
	name, options, _ := strings.Cut(text, ":")
	var w Workload
	if resource, verb, is := strings.Cut(name, "/"); is {
		w.Call = Call{Resource: resource, Verb: verb}
		if resource == "" {
			return Workload{}, fmt.Errorf("%w: %q names no resource", family.ErrInvalid, text)
		}
	} else {
		w.Verb = name
	}
	if err := w.validateName(); err != nil {
		return Workload{}, err
	}
	if err := family.Parameters(text, options, w.set); err != nil {
		return Workload{}, err
	}
	return w.Resolved()
}

// parameters of a call, in the order of the documentation.
var parameters = append([]string{"objects", "consistent", "replicas", "start"}, family.PaceParameters...)

func (w *Workload) set(key, value string) (err error) {
	switch key {
	case "objects":
		w.Objects, err = family.Positive(strconv.Atoi(value))
	case "consistent":
		w.Consistent, err = strconv.ParseBool(value)
	case "replicas":
		w.Replicas, err = family.Positive(strconv.Atoi(value))
	case "start":
		w.Start, err = strconv.ParseBool(value)
	default:
		if err := family.Known("api", key, parameters); err != nil {
			return err
		}
		return w.Pace.Set(key, value)
	}
	return err
}

// Resolved is the workload with its defaults, or an error that Is family.ErrInvalid and names what is out of range.
func (w Workload) Resolved() (Workload, error) {
	if w.Verb == "list" && w.Objects == 0 {
		w.Objects = 1
	}
	w.Pace = w.Pace.Or(w.defaultPace())
	return w, w.validate()
}

// defaultPace of pods is SIG Scalability's: starting pods disturbs the start of others.
func (w Workload) defaultPace() family.Pace {
	if w.churns() {
		return family.Pace{Rate: 1}
	}
	return family.Pace{Rate: family.DefaultRate}
}

func (w Workload) validate() error {
	if err := w.Pace.Validate("api"); err != nil {
		return err
	}
	if w.churns() && (w.Rate == 0 || w.Rate > churn) {
		return fmt.Errorf("%w: %s has a rate up to %d per second, the churn that Kubernetes' own objectives are about",
			family.ErrInvalid, w.Call, churn)
	}
	return w.Call.validate()
}

// Title is the workload's part of its case's name.
func (w Workload) Title() string {
	var options []string
	if w.Objects > 1 {
		options = append(options, fmt.Sprintf("objects=%d", w.Objects))
	}
	if w.Consistent {
		options = append(options, "consistent=true")
	}
	if w.Replicas > 0 {
		options = append(options, fmt.Sprintf("replicas=%d", w.Replicas))
	}
	if w.Start {
		options = append(options, "start=true")
	}
	return family.Title(w.Call.String(), append(options, w.Pace.Options(w.defaultPace())...))
}

// groups are the names of resources in the plural; calls on one are shown side by side.
var groups = map[string]string{"configmap": "ConfigMaps", "namespace": "Namespaces", "service": "Services",
	"deployment": "Deployments", "pod": "Pods"}

// subject is what is asked in plain words: "API: list 100 configmaps, consistent".
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

// Traits are those of a case.
func (w Workload) Traits() family.Traits {
	return family.Traits{
		Path: path, Kind: w.Title(), Metric: w.Pace.Metric(),
		Words: result.Words{Subject: w.subject(), Quantity: w.Pace.Quantity(),
			Group: groups[w.Resource], Member: strings.TrimPrefix(w.Title(), w.Resource+"/")},
		Limits: w.Pace.Limits(objectsTime), Alone: w.Pace.Alone(), Nominal: w.Pace.Nominal(w.usual()),
		Needs: targets.Placement{Call: targets.Call{Resource: w.Resource, Operation: w.Verb}},
	}
}

// usual is the time that is usually needed besides.
func (w Workload) usual() time.Duration {
	if w.Starts() {
		return usualPods
	}
	return usualObjects
}

// Disturbs says what of the workload other users of the server may feel.
func (w Workload) Disturbs(t family.Times) string {
	made := w.Due(t)
	switch why := w.Pace.Disturbs(); {
	case why != "":
		return why
	case w.Clients > 0 && w.Verb == "create":
		return "how many objects the clients make is not known before"
	case w.Objects > gentleObjects:
		return fmt.Sprintf("%d objects are more than %d", w.Objects, gentleObjects)
	case w.Pods(made) > gentlePods:
		return fmt.Sprintf("%.0f pods in a run are more than %d", w.Pods(made), gentlePods)
	case slices.Contains([]string{"create", "delete", "watch"}, w.Verb) && made > gentleObjects:
		return fmt.Sprintf("%.0f objects in a run are more than %d", made, gentleObjects)
	}
	return ""
}

// Sends is nothing of the user's: a target knows its API server.
func (w Workload) Sends() family.Sent { return family.Sent{To: host.Destination{}} }

// At is another pace, but for what starts pods, and for what begins with objects that have to be counted before.
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

// Asked is how often it is asked, and what is known of it besides its latency.
func (w Workload) Asked() family.Asked {
	a := family.Asked{Pace: w.Pace}
	if w.Rate > 0 {
		// A closed loop hardly samples the time in which a server stalls, and a search brings it to its limit.
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

// Verb is the agent's, with a [Run] as its body.
const Verb = "api"

// A Run is what an agent is asked to do.
type Run struct {
	Endpoint host.Endpoint `json:"endpoint"`
	Workload Workload      `json:"workload"`
	Times    family.Times  `json:"times"`
}

// Open is the run without its secrets, to be kept.
func (r Run) Open() any {
	r.Endpoint = r.Endpoint.Open()
	return r
}

// Ask is what an agent is asked to do at an endpoint. An error that Is result.ErrNotSupported says why it cannot be.
func (w Workload) Ask(e host.Endpoint, t family.Times, _ family.Environment) (verb string, body any, err error) {
	if why := e.Lacks["namespaces"]; why != "" && w.Resource == "namespace" {
		return "", nil, result.NotSupported(why)
	}
	return Verb, Run{Endpoint: e, Workload: w, Times: t}, nil
}
