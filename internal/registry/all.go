// Package registry is the only list of implementations: to add a tool, a kind of target, a datapath or a
// suite is to write its package and to add a line here.
package registry

import (
	"context"
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/nearest"
	"github.com/knotmeter/knotmeter/internal/suite"
	"github.com/knotmeter/knotmeter/internal/suite/api"
	"github.com/knotmeter/knotmeter/internal/suite/app"
	"github.com/knotmeter/knotmeter/internal/suite/network"
	"github.com/knotmeter/knotmeter/internal/suite/storage"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/tool"
	"github.com/knotmeter/knotmeter/internal/tool/fio"
	"github.com/knotmeter/knotmeter/internal/tool/iperf3"
	"github.com/knotmeter/knotmeter/internal/tool/native"
	"github.com/knotmeter/knotmeter/internal/tool/web"
)

// Tools are what --tool takes; the first is the default.
func Tools() []tool.Tool { return []tool.Tool{native.New(), iperf3.New(), fio.New(), web.New()} }

// Suites are what --suite takes; the first is the default.
func Suites() []suite.Suite {
	return slices.Concat([]suite.Suite{network.Suite(), network.Quick()}, storage.Suites(), api.Suites(), app.Suites())
}

// A SuiteFile is a way to make a suite of a user's own file: --suite storage:jobs.fio.
type SuiteFile struct {
	Name  string // what stands before the colon
	About string
	// Read makes the suite. Name is the file's, for errors and the suite's name.
	Read func(name string, data []byte) (suite.Suite, error)
}

// SuiteFiles are what --suite takes with a file's name.
func SuiteFiles() []SuiteFile {
	return []SuiteFile{
		{Name: "storage", About: "each job of a job file of fio is a case", Read: storage.File},
		{Name: "app", About: "each description of requests in a YAML file is a case", Read: app.File},
	}
}

// A Kind is a kind of target: what stands before the colon.
type Kind struct {
	Name    string
	Targets []Line // what stands after it
	Example string // with an option
	Options []target.Option
	// Section is the section of an experiment file with the options that have a field; empty where none has.
	Section string
	// Uses says what reaching a target runs and sends, by what it names; nil where that is nothing. It reaches nobody.
	Uses func(target.Spec) []string
	// New makes a target; it touches nothing until the target is used.
	New func(target.Spec) (target.Target, error)
	// Features says what of this machine it can make use of, in a line each: what it has, and what not and why.
	Features func() ([]string, error)
	// Clean removes what crashes left behind, and returns the names of it: what belongs to these targets, or without
	// any all that can be found without one.
	Clean func(context.Context, []target.Spec, target.Cleaning) ([]string, error)
	// Inspect says that only the facts of a target tell whether it can be used, so that doctor asks for them.
	Inspect bool
	// RBAC is what a target needs to be allowed, as manifests, with as few rights as possible or wide; nil where there is
	// nobody to allow it.
	RBAC func(spec target.Spec, wide bool) (string, error)
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
	return Kind{}, fmt.Errorf("%w: there is no kind %q; there are %s", target.ErrSpec, name, nearest.List(name, names))
}

// Target makes the target that a text names.
func Target(spec target.Spec) (target.Target, error) {
	k, err := FindKind(spec.Kind)
	if err != nil {
		return nil, err
	}
	return k.New(spec)
}
