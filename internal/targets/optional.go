package targets

import (
	"context"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A Sharer is a target that can be measured at the same time as another one.
type Sharer interface {
	// Shares returns the names of resources that other targets may use too, such as "the machine with boot ID 12ab": two
	// targets with a common name would disturb each other. It returns an error if the resources are unknown.
	Shares(ctx context.Context) ([]string, error)
}

// An Underlaid is a target that knows the network between its nodes.
type Underlaid interface {
	// Underlay returns the name of that network: targets with the same name differ only in the layers above it.
	Underlay() string
}

// A Filler is a target whose runs write files to storage that other targets may write to as well. Each of n targets
// with the same storage uses at most one n-th of what one alone may use.
type Filler interface {
	Fills() string // identifies the storage, such as a file system
}

// An Expiring is a target whose sites end by themselves, so that a crash leaves none for ever.
type Expiring interface {
	SiteLife() time.Duration // from opening a site until it ends
}

// A Cleaning controls the removal of leftovers of interrupted experiments. Objects of running ones are kept, unless All
// is set.
type Cleaning struct {
	All    bool // also remove objects that are or may be in use, or may not be Knotmeter's
	DryRun bool // remove nothing
	// Found is called for everything that was found, before it is removed.
	Found func(Leftover)
}

// A Leftover is an object of Knotmeter on a target, or something that looks like one.
type Leftover struct {
	Name      string `json:"name"`              // such as "namespace knotmeter-x"
	Reason    string `json:"doubt,omitempty"`   // to keep it, such as that it may be in use: a clause; empty: none
	Removable bool   `json:"removed,omitempty"` // by this cleaning; a dry run does not remove it
}

// Report calls Found with an object, and reports whether to remove it now. reason is why it may be in use, or empty.
func (c Cleaning) Report(name, reason string) bool {
	removable := c.All || reason == ""
	c.Found(Leftover{name, reason, removable})
	return removable && !c.DryRun
}

// A Guarded is a target on which not every user may measure everything that it offers.
type Guarded interface {
	// Allowed returns an error with a remedy if the user lacks rights that p needs in addition to those of every run.
	Allowed(ctx context.Context, p Placement) error
}

// A Caller is a target whose runs send requests to existing applications.
type Caller interface {
	// Applications returns the destinations of these requests, by the names of the applications in placements. It sends
	// nothing.
	Applications() map[string]host.Destination
}

// A Located is a target on other machines.
type Located interface {
	// Where describes the destination, such as the context and the URL of an API server. shared reports whether users
	// of other machines may use it too, so that measurements may disturb them; it is true in case of doubt. Where sends
	// nothing; it returns an error if there is no destination.
	Where() (words string, shared bool, err error)
}

// A Privileged is a target that may need unusual privileges on nodes.
type Privileged interface {
	// Privileges describes them and their purpose, in a clause after the target's name; empty without any.
	Privileges() string
}

// A Switched is a target that keeps state which the user's switch commands may change.
type Switched interface {
	// Environment returns variables of the environment of switch commands, as NAME=value.
	Environment() []string
	// Settle discards that state. It returns an error as long as the target is visibly not ready, such as nodes that are
	// not Ready.
	Settle(ctx context.Context) error
}

// A Rotator is a target that may choose other nodes for each rotation of a [Placement].
type Rotator interface {
	// Nodes returns the pairs of nodes, of client and server, that rotations use in turn; nil if all use the same.
	Nodes(ctx context.Context) ([][2]string, error)
}
