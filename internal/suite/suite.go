// Package suite says which cases are measured: a suite is a function that returns cases, as data,
// without effects. The cases themselves are in the packages below it.
package suite

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/workload"
)

// A Case is a placement and a workload, and what it is measured for.
type Case struct {
	Path     target.Path
	Workload workload.Spec
	Role     result.Role
}

// Name is <path>/<workload>, for example pod-pod/other/tcp-rr.
func (c Case) Name() string { return string(c.Path) + "/" + c.Workload.String() }

// Placement is what a run of the case needs of its places.
func (c Case) Placement(rotation int) target.Placement {
	return target.Placement{
		Path: c.Path, Rotation: rotation, Vault: c.Workload.Kind == workload.Vault,
		Call: target.Call{Resource: c.Workload.Call.Resource, Operation: c.Workload.Call.Verb},
	}
}

// A Suite is a named list of cases.
type Suite struct {
	Name  string // network:quick
	About string // one line for list
	Cases []Case
	// Duration is the window of a run unless somebody says otherwise; 0: as the design has it.
	Duration time.Duration
}

// ErrNoCase is what every error about the name of a case is.
var ErrNoCase = errors.New("no such case")

// Definition is what a case's name alone does not say: the text of a job or of requests of
// the user's own.
func (c Case) Definition() string { return c.Workload.IO.Text + c.Workload.App.Text }

// ParseCase reads a case from its full name and its definition, which most cases do not have;
// exploratory until somebody says otherwise.
func ParseCase(name, definition string) (Case, error) {
	if rest, ok := strings.CutPrefix(name, string(target.Storage)+"/"); ok {
		return parsed(target.Storage, name)(workload.ParseIO(rest, definition))
	}
	if rest, ok := strings.CutPrefix(name, string(target.API)+"/"); ok {
		return parsed(target.API, name)(workload.ParseCall(rest))
	}
	if rest, ok := strings.CutPrefix(name, string(target.App)+"/"); ok {
		return parsed(target.App, name)(workload.ParseApp(rest, definition))
	}
	for _, p := range target.Paths() {
		if rest, ok := strings.CutPrefix(name, string(p)+"/"); ok {
			return parsed(p, name)(workload.Parse(rest))
		}
	}
	return Case{}, fmt.Errorf("%w: %q does not begin with a path, such as pod-pod/other/, storage/, api/ or app/", ErrNoCase, name)
}

func parsed(p target.Path, name string) func(workload.Spec, error) (Case, error) {
	return func(w workload.Spec, err error) (Case, error) {
		if err != nil {
			return Case{}, fmt.Errorf("%w: %q: %w", ErrNoCase, name, err)
		}
		return Case{Path: p, Workload: w, Role: result.Exploratory}, nil
	}
}
