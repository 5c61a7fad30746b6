// Package targets defines where experiments measure: a [Target] opens a fresh site for each block, returns facts about
// itself, and removes what it created. Targets never see tools.
//
// Package targettest has the conformance suite that every target passes, and an in-memory target for tests.
package targets

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/knotmeter/knotmeter/internal/host"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Placement is what a run requires of a target: a path with a host at each end, or a client without a server that has
// a volume, or sends requests to an API server or an application. The zero value is a client and nothing else.
type Placement struct {
	Path result.Path // from client to server; empty: no server
	// Datagrams means that the run sends something over the path that is not TCP: UDP or ICMP.
	Datagrams bool
	Volume    bool // the client has a volume
	// AsksAPI means that the run sends requests to an API server, for which it needs the Rights.
	AsksAPI bool
	Rights  []Right
	// ProbesPods means that its requests start pods with the agent's image, which answer the client's probes.
	ProbesPods bool
	// Machine means that the run measures the client's machine itself, its CPUs, memory and kernel, and sends nothing.
	Machine bool
	// Application is the application that the target has to locate or deploy, by the name of the target's option: vault.
	// Empty: none, or one that the workload itself names.
	Application string
	// Program is the external program that the run starts on its hosts; empty: only the agent.
	Program string
	// Rotation selects the nodes if there is a choice: equal rotations give equal nodes.
	Rotation int
}

// Check returns an error that Is result.ErrNotSupported if no target can offer the placement.
func (p Placement) Check() error {
	if p.Path != "" && !slices.Contains(result.Paths(), p.Path) {
		return result.NotSupported(fmt.Sprintf("there is no path %q", p.Path))
	}
	needs := []bool{p.Path != "", p.Volume, p.AsksAPI, p.Machine, p.Application != ""}
	if needs = slices.DeleteFunc(needs, func(needed bool) bool { return !needed }); len(needs) > 1 {
		return result.NotSupported("no place has more than one of a path, a volume, an API server, a machine that is " +
			"measured, and an application")
	}
	return nil
}

// Equal reports whether two placements require the same.
func (p Placement) Equal(other Placement) bool { return reflect.DeepEqual(p, other) }

// A Right allows some verbs on a resource of an API server.
type Right struct {
	Group    string // "" is the core group
	Resource string // in the plural, perhaps with a subresource: pods/status; or a URL path: /metrics
	Verbs    []string
	// Purpose is set if the right must hold in the whole cluster; else it holds in the namespace of the runs.
	Purpose Purpose
}

// A Purpose explains rights in the whole cluster. Runs do without them if they cannot be granted.
type Purpose struct {
	Name  string // key of the reason in host.Endpoint.Lacks if the rights cannot be granted
	About string // when the rights are needed, and what they allow
}

// A Site holds the fresh places of a block on one target, which its runs use one after another.
type Site struct {
	Places []Place // one for each placement, in the same order
	// Close removes everything that Open created, and returns when it is gone. It is called once.
	Close func(ctx context.Context) error
	// Spent returns, after Close, what the site used of the target besides the load of its runs, such as pods and requests
	// to an API server, as metrics that are shown and not compared. It may be nil.
	Spent func() []result.Value
}

// A Place is what a target provides for the runs of a placement. Its pair has a server, a volume or an endpoint if the
// placement requires one.
type Place struct {
	host.Pair
	// Facts of this place: which nodes, what the datapath check saw, MTU, offloads.
	Facts []result.Fact
	// Warnings are recorded with its runs.
	Warnings []result.Warning
	// Health is called after a run, before the next one and before Close. It returns the failures of the place since
	// Open or the previous call, each a sentence without full stop. They invalidate the run, and later runs cannot use
	// the place. It may be nil.
	Health func(ctx context.Context) []string
	// Err is the reason why this place could not be opened, although the site was; then no other field is set.
	Err error
}

// A Plan describes what an experiment is going to do on a target.
type Plan struct {
	Experiment string      // ID, the same for all targets and resumed sessions
	Version    string      // of this program
	Placements []Placement // one for each case planned on the target
	Share      bool        // begin even if another experiment uses the target
	// InTurn is set if switch commands of the user change the system below the target between sites: nothing that a site
	// created may outlast it.
	InTurn bool
	// Filling is the number of the experiment's targets, this one included, that may fill the same storage at the same
	// time; see [Filler]. 0 is 1.
	Filling int
	// Earlier are the facts that a resumed experiment has recorded of the target. Begin returns an error if they show that
	// the target was another cluster or machine.
	Earlier []result.Fact
}

// A Target offers places to run and facts about itself. Its methods are called one at a time, and so are the functions
// of its sites.
type Target interface {
	// Supports returns an error that Is result.ErrNotSupported and names what is missing for the placement, or nil. It is
	// cheap and changes nothing.
	Supports(p Placement) error
	// Begin connects to the target and claims it for the experiment until Close. It is called at most once, before
	// anything is written or measured. The error names the unreachable target, or the other experiment that uses it, and a
	// remedy. With Plan.Share the other experiment is a warning for the results instead, a sentence without full stop.
	// Begin does not check whether the target supports the placements of the plan.
	Begin(ctx context.Context, p Plan) (warnings []string, err error)
	// Facts returns facts that are recorded once per experiment, or once per visit of targets measured in turn. Facts that
	// cannot be determined are result.Unknown.
	Facts(ctx context.Context) ([]result.Fact, error)
	// Open creates a site with a fresh place for each placement, and checks that the places are as the target's name
	// promises. All placements have the same rotation; places share what they can, such as pods. An error concerns all
	// places, and nothing is left behind then; an error of one place is its Err.
	Open(ctx context.Context, placements []Placement) (Site, error)
	// Close releases what the target holds between sites, and its claim. It is called once, also after errors.
	Close() error
}

// ErrUnavailable is the error of Open if no case can be measured on the target now: it cannot be reached, or something
// that all sites need was removed. Open has already waited for the target to become available.
var ErrUnavailable = errors.New("the target is not available")

// ErrLeft is the error of Close if objects may be left behind, which `knotmeter clean` removes.
var ErrLeft = errors.New("something may be left behind")
