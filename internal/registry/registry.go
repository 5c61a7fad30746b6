// Package registry lists all families, tools and kinds of targets. To add one, write its package and add a line here.
package registry

import (
	"context"
	"fmt"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/family/api"
	"github.com/knotmeter/knotmeter/internal/family/app"
	"github.com/knotmeter/knotmeter/internal/family/compute"
	"github.com/knotmeter/knotmeter/internal/family/compute/loops"
	"github.com/knotmeter/knotmeter/internal/family/compute/openssl"
	"github.com/knotmeter/knotmeter/internal/family/compute/stressng"
	"github.com/knotmeter/knotmeter/internal/family/compute/sysbench"
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
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/targets"
)

// Families returns all families; the first tool and the first suite are the defaults.
func Families() family.List {
	requests := web.New()
	return family.List{
		network.Family(native.New(), iperf3.New()), storage.Family(fio.New()), api.Family(requests), app.Family(requests),
		dynamics.Family(prober.New()), compute.Family(loops.New(), sysbench.New(), openssl.New(), stressng.New()),
	}
}

// A Kind is a kind of target. Its name is the part of a target before the colon.
type Kind struct {
	Name    string
	Targets []Line // for lists
	Example string // with an option
	// Names completes the name of a target from what this machine knows, such as the contexts of a kubeconfig; nil if
	// Targets lists all. It is fast, connects to nothing, and ignores errors.
	Names   func(result.Spec) []string
	Options []targets.Option
	// Uses lists the programs that are run and the data that are sent to connect to a target; nil if there are none. It
	// connects to nothing.
	Uses func(result.Spec) []string
	// Pin completes a target with defaults that may change later, such as the current context; nil if there are none.
	// It connects to nothing.
	Pin func(result.Spec) result.Spec
	// New returns a target, without any effect until the target is used.
	New func(result.Spec) (targets.Target, error)
	// Features returns what this machine supports; nil if it does not matter, or only a target itself shows it.
	Features func() ([]lab.Finding, error)
	// Clean removes leftovers of crashes and returns their names: those of the targets, or if there are none, those
	// that can be found without a target.
	Clean func(context.Context, []result.Spec, targets.Cleaning) ([]string, error)
	// Inspect reports whether doctor must collect the facts of a target to see if it can be used.
	Inspect bool
	// RBAC returns manifests with the permissions that a target needs, minimal or wide; nil if it needs none.
	RBAC func(spec result.Spec, wide bool) (string, error)
}

// A Line is an entry of a list.
type Line struct{ Spec, About string }

// FindKind returns the kind with the given name. The error wraps result.ErrSpec and lists the known names.
func FindKind(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("%w: there is no kind %q; there are %s", result.ErrSpec, name, prose.Choices(name, names))
}

// Pinned returns the target with its changeable defaults filled in, so that it means the same when it is read again.
func Pinned(spec result.Spec) result.Spec {
	if k, err := FindKind(spec.Kind); err == nil && k.Pin != nil {
		return k.Pin(spec)
	}
	return spec
}

// Target returns the target of a spec.
func Target(spec result.Spec) (targets.Target, error) {
	k, err := FindKind(spec.Kind)
	if err != nil {
		return nil, err
	}
	return k.New(spec)
}
