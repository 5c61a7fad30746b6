package targets

import (
	"context"
	"time"

	"github.com/knotmeter/knotmeter/internal/host"
)

// A Sharer is a target that can be measured at the same time as another one. Shares names what it uses and another may
// use too, such as "the machine with boot ID 12ab": two targets that have one of these in common would disturb each
// other. What cannot be found out is an error.
type Sharer interface {
	Shares(ctx context.Context) ([]string, error)
}

// An Underlaid target knows what carries traffic between its nodes: targets that name the same differ only above it.
type Underlaid interface {
	Underlay() string
}

// The sites of a Expiring target end by themselves, so that a crash does not leave them for ever.
type Expiring interface {
	SiteLife() time.Duration // from when a site is made
}

// A Cleaning is how leftovers are removed: what experiments that were interrupted left, and nothing of those that run.
type Cleaning struct {
	All    bool // what runs too, and what nothing tells of whether it does
	DryRun bool // remove nothing
	// Found is called with everything of ours that there is, before it is removed.
	Found func(Leftover)
}

// A Leftover is something of ours on a target.
type Leftover struct {
	Name    string `json:"name"`            // such as "namespace knotmeter-x"
	Doubt   string `json:"doubt,omitempty"` // why it may be in use, a clause; empty: it cannot
	Removed bool   `json:"removed,omitempty"`
}

// Report tells of something of ours that may be in use for a reason, or is not, and says whether to remove it now.
func (c Cleaning) Report(name, doubt string) bool {
	removed := c.All || doubt == ""
	c.Found(Leftover{name, doubt, removed})
	return removed && !c.DryRun
}

// A Guarded is a target on which not every user may measure all that it offers. Allowed says which rights p takes
// besides those of every run that this user lacks, and what would change that; nil if nothing is missing.
type Guarded interface {
	Allowed(ctx context.Context, p Placement) error
}

// A Caller is a target from which applications are asked that were there before. Applications are where requests to
// these would go, by the names that placements have for them. Nothing is sent to find that out.
type Caller interface {
	Applications() map[string]host.Destination
}

// A Located target is reached elsewhere. Where says in words what would be reached, such as the context and the URL of
// an API server, and reports whether users of other machines may use it too, who may feel what is measured there: also
// where it is not known. It reaches nobody; an error says why nobody would be.
type Located interface {
	Where() (words string, shared bool, err error)
}

// A Privileged is a target that may take more on nodes than programs there usually have. Privileges say what and what
// for, in a clause after the target's name; empty if it takes nothing.
type Privileged interface {
	Privileges() string
}

// A Switched target remembers what commands of the user's may change that put it in place.
type Switched interface {
	// Environment is what such a command learns of the target, as NAME=value.
	Environment() []string
	// Settle forgets what a command may have changed. It returns an error as long as the target is not ready, by what can
	// be seen without a site: nodes that are not Ready.
	Settle(ctx context.Context) error
}

// A Rotator is a target that may pick other nodes for each rotation of a [Placement]. Nodes are the pairs of them in
// turn, client's and server's; nil if they are the same for all.
type Rotator interface {
	Nodes(ctx context.Context) ([][2]string, error)
}
