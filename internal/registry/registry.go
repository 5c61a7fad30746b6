// Package registry is the only list of implementations: to add a family, a tool, a kind of target or a datapath is to
// write its package and to add a line here.
package registry

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/app"
	"github.com/knotmeter/knotmeter/internal/family/dynamics"
	"github.com/knotmeter/knotmeter/internal/family/dynamics/prober"
	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/iperf3"
	"github.com/knotmeter/knotmeter/internal/family/network/native"
	"github.com/knotmeter/knotmeter/internal/family/storage"
	"github.com/knotmeter/knotmeter/internal/family/storage/fio"
	"github.com/knotmeter/knotmeter/internal/family/web"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Families are what can be measured; the first tool and the first suite are the defaults.
func Families() family.List {
	requests := web.New()
	return family.List{
		network.Family(native.New(), iperf3.New()), storage.Family(fio.New()), api.Family(requests), app.Family(requests),
		dynamics.Family(prober.New()),
	}
}

// A Kind is a kind of target: what stands before the colon.
type Kind struct {
	Name    string
	Targets []Line // what stands after it
	Example string // with an option
	// Names are the names that this machine alone knows and that may begin as the target's does, for completion; nil where
	// Targets has all. It is quick, reaches nobody, and leaves out what it cannot read.
	Names   func(targets.Spec) []string
	Options []targets.Option
	// Section is the section of an experiment file with the options that have a field; empty where none has.
	Section string
	// Uses says what reaching a target runs and sends, by what it names; nil where that is nothing. It reaches nobody.
	Uses func(targets.Spec) []string
	// Pin completes a target by what it means now and could mean something else later; nil where nothing can. It reaches
	// nobody.
	Pin func(targets.Spec) targets.Spec
	// New makes a target; it touches nothing until the target is used.
	New func(targets.Spec) (targets.Target, error)
	// Features are what of this machine it can use; nil where nothing of this machine matters or only a target tells what
	// does.
	Features func() ([]lab.Finding, error)
	// Clean removes what crashes left behind, and returns the names of it: what belongs to these targets, or without
	// any all that can be found without one.
	Clean func(context.Context, []targets.Spec, targets.Cleaning) ([]string, error)
	// Inspect says that only the facts of a target tell whether it can be used, so that doctor asks for them.
	Inspect bool
	// RBAC is what a target needs to be allowed, as manifests, with as few rights as possible or wide; nil where there is
	// nobody to allow it.
	RBAC func(spec targets.Spec, wide bool) (string, error)
}

// A Line is an entry of a list.
type Line struct{ Spec, About string }

// FindKind finds a kind by its name.
func FindKind(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("%w: there is no kind %q; there are %s", targets.ErrSpec, name, prose.Choices(name, names))
}

// Pinned is a target that means the same when it is read again.
func Pinned(spec targets.Spec) targets.Spec {
	if k, err := FindKind(spec.Kind); err == nil && k.Pin != nil {
		return k.Pin(spec)
	}
	return spec
}

// Target makes the target that a text names.
func Target(spec targets.Spec) (targets.Target, error) {
	k, err := FindKind(spec.Kind)
	if err != nil {
		return nil, err
	}
	return k.New(spec)
}
