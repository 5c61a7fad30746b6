// Package targets is where things are measured: a Target opens a fresh site for each block, tells the
// facts about itself, and removes what it made. Targets never see tools.
//
// The conformance suite that every target passes, and the in-memory twin, are in targettest.
package targets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Path is between which kinds of places the traffic of a network case goes.
type Path string

// The nine paths. /same means the other end is on the client's node, /other on another.
const (
	NodeNode     Path = "node-node"
	PodNodeSame  Path = "pod-node/same"
	PodNodeOther Path = "pod-node/other"
	PodPodSame   Path = "pod-pod/same"
	PodPodOther  Path = "pod-pod/other"
	NodeSvcSame  Path = "node-svc/same"
	NodeSvcOther Path = "node-svc/other"
	PodSvcSame   Path = "pod-svc/same"
	PodSvcOther  Path = "pod-svc/other"
)

// Paths lists the nine paths in the order of the documentation. The list is the caller's, to sort or shorten.
func Paths() []Path { return slices.Clone(paths) }

var paths = []Path{
	NodeNode, PodNodeSame, PodNodeOther, PodPodSame, PodPodOther, NodeSvcSame, NodeSvcOther, PodSvcSame, PodSvcOther,
}

// Same says whether the path stays on the client's node.
func (p Path) Same() bool { return strings.HasSuffix(string(p), "/same") }

// Between is the path with the same ends on two nodes.
func (p Path) Between() Path {
	if kind, is := strings.CutSuffix(string(p), "/same"); is {
		return Path(kind + "/other")
	}
	return p
}

// Other says whether the path leaves the client's node.
func (p Path) Other() bool { return p == NodeNode || strings.HasSuffix(string(p), "/other") }

// Service says whether the client dials a Service and not the server itself.
func (p Path) Service() bool { return strings.Contains(string(p), "-svc/") }

// ClientPod says whether the client is in a pod.
func (p Path) ClientPod() bool { return strings.HasPrefix(string(p), "pod-") }

// ServerPod says whether the server is in a pod.
func (p Path) ServerPod() bool { return p.Service() || strings.HasPrefix(string(p), "pod-pod/") }

// A Placement is what a run needs of its place: a path with a host at each end, or a client alone that has a volume,
// asks an API server or asks an application. The zero value is a client and nothing else.
type Placement struct {
	Path   Path // from the client to the server; empty: there is no server
	Volume bool // the client has one
	// Call is what the run asks of an API server; the zero value: nothing.
	Call Call
	// Application is what the run asks and the target has to know, or to deploy, by the name of the target's option that
	// says where it is: vault. Empty: none, or one that the workload itself names.
	Application string
	// Program is what the run starts on its hosts besides the agent; empty: nothing.
	Program string
	// Rotation picks the nodes where there is a choice: equal rotations give equal nodes.
	Rotation int
}

// Check is nil for what a target may offer; else it is an error that Is result.ErrNotSupported.
func (p Placement) Check() error {
	if p.Path != "" && !slices.Contains(paths, p.Path) {
		return result.NotSupported(fmt.Sprintf("there is no path %q", p.Path))
	}
	needs := []bool{p.Path != "", p.Volume, p.AsksAPI(), p.Application != ""}
	if needs = slices.DeleteFunc(needs, func(needed bool) bool { return !needed }); len(needs) > 1 {
		return result.NotSupported("no place has more than one of a path, a volume, an API server and an application")
	}
	return nil
}

// AsksAPI reports whether the run asks an API server.
func (p Placement) AsksAPI() bool { return p.Call != Call{} }

// A Call is what a run asks of an API server, by the words of the case: create of configmap. A run that is about no
// single resource has none.
type Call struct{ Resource, Operation string }

// Effect is the operation of runs that change a resource and see what that does to traffic: networkpolicy, pod,
// endpoint, service or deployment.
const Effect = "effect"

// A Site is everything that a block needs on one target: its fresh places, which one run after another uses.
type Site struct {
	Places []Place // one for each placement, in that order
	// Close removes everything that Open made and returns when it is gone. It is called once.
	Close func(ctx context.Context) error
	// Spent is asked after Close: what the site took of the target beside the load of its runs, such as pods and requests
	// to an API server, as metrics that are shown and not compared. It is nil where there is nothing to tell.
	Spent func() []result.Value
}

// A Place is what the runs of a placement have. Its pair has a server where there is a path, and a volume or an
// endpoint where the placement needs that.
type Place struct {
	host.Pair
	// Facts of this place: which nodes, what the datapath check saw, MTU, offloads.
	Facts []result.Fact
	// Warnings are what a reader of its runs should know.
	Warnings []result.Warning
	// Health is asked when a run has ended, before the next one and before Close: what became of the place since it was
	// opened, or asked last, that makes what was measured count for nothing, each a sentence without full stop that says
	// what happened. No run that follows can rely on such a place. It is nil where nothing can become of it.
	Health func(ctx context.Context) []string
	// Err is why there is no such place, while the others are there; nothing else is set then.
	Err error
}

// A Plan is what an experiment is going to do on a target.
type Plan struct {
	Experiment string      // its ID, which all of its targets have in common, and its later sessions too
	Version    string      // of this program
	Placements []Placement // of the cases that are planned on the target, one for each
	Share      bool        // begin even if another experiment runs there
	// InTurn is set where commands of the user's change what is below the target between its sites: nothing that a site
	// made may outlast it.
	InTurn bool
	// Earlier are the facts that a resumed experiment has recorded of the target. One that turns out to be another
	// cluster or machine by them does not begin.
	Earlier []result.Fact
}

// A Target offers places to run and facts about itself. Its methods are called one at a time, and so are the functions
// of its sites.
type Target interface {
	// Supports is cheap and touches nothing: nil, or an error that Is result.ErrNotSupported and
	// names what is missing for the placement.
	Supports(p Placement) error
	// Begin is called at most once, before anything is written or measured: it reaches the target and claims it for the
	// experiment until Close. An error names the target that is not reached, or the other experiment that runs there, and
	// what to do. With Plan.Share the other experiment is a warning instead, which belongs into the results; each warning
	// is a sentence without full stop. What the target cannot do of the plan is for Supports to tell, not for Begin.
	Begin(ctx context.Context, p Plan) (warnings []string, err error)
	// Facts are recorded once per experiment, or once per visit of targets that are measured in turn. What cannot be found
	// out is result.Unknown.
	Facts(ctx context.Context) ([]result.Fact, error)
	// Open makes a site with a fresh place for each placement, and checks that they are what the target's name says. They
	// have the same rotation; what several can share, such as a pod, is there once. An error is about all of them, and
	// then nothing is left behind; what is about one is that place's Err.
	Open(ctx context.Context, placements []Placement) (Site, error)
	// Close ends what the target holds between sites. It is called once, also after errors.
	Close() error
}

// ErrUnavailable is what an error of Open is while nothing can be measured on the target, whatever the case: it
// cannot be reached, or what is needed there was taken away. The target has waited as long as it makes sense.
var ErrUnavailable = errors.New("the target is not available")

// ErrLeft is what an error of Close is when something may be left that Open or Close should have removed, and that
// `knotmeter clean` removes.
var ErrLeft = errors.New("something may be left behind")
