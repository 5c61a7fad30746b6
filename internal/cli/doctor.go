package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/target"
)

func newDoctor(s Streams) *cobra.Command {
	var texts []string
	var rbac rbacForm
	var flags kindFlags
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what can be measured here, and what cannot and why",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			specs, err := flags.specs(texts)
			if err != nil {
				return err
			}
			if rbac != "" {
				return printRBAC(s, specs, rbac == wideRBAC)
			}
			if len(specs) == 0 {
				return examineMachine(c.Context(), s)
			}
			for _, spec := range specs {
				if err := examine(c.Context(), s, spec, true); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().Var(&rbac, "rbac",
		"print the rights that the target needs in one namespace, as Kubernetes manifests; =cluster: those in all namespaces")
	c.Flags().Lookup("rbac").NoOptDefVal = narrowRBAC
	flags.register(c)
	c.Flags().StringArrayVar(&texts, "target", nil, "examine this target; repeated (default: all of the lab)")
	return c
}

// examineMachine prints what this machine has, and what targets can be made of that.
func examineMachine(ctx context.Context, s Streams) error {
	for _, k := range registry.Kinds() {
		if k.Features == nil {
			continue
		}
		lines, err := k.Features()
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		fmt.Fprintln(s.Out, strings.Join(lines, "\n")+"\n")
		for _, line := range k.Targets {
			spec, err := target.ParseSpec(line.Spec)
			if err == nil {
				err = examine(ctx, s, spec, false)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// An rbacForm is a flag that takes which rights are printed.
type rbacForm string

const (
	narrowRBAC = "namespace"
	wideRBAC   = "cluster"
)

func (f *rbacForm) String() string { return string(*f) }
func (f *rbacForm) Type() string   { return "form" }

func (f *rbacForm) Set(text string) error {
	if text != narrowRBAC && text != wideRBAC {
		return fmt.Errorf("it is %s or %s", narrowRBAC, wideRBAC)
	}
	*f = rbacForm(text)
	return nil
}

// printRBAC prints the manifests of each target.
func printRBAC(s Streams, specs []target.Spec, wide bool) error {
	if len(specs) == 0 {
		return errors.New("--rbac: name a cluster with --target, such as kube:production")
	}
	for _, spec := range specs {
		k, err := registry.FindKind(spec.Kind)
		if err != nil {
			return fmt.Errorf("--target: %w", err)
		}
		if k.RBAC == nil {
			return fmt.Errorf("--rbac: %s asks nobody for permission", spec.Label())
		}
		manifests, err := k.RBAC(spec, wide)
		if err != nil {
			return fmt.Errorf("--target: %w", err)
		}
		fmt.Fprint(s.Out, manifests)
	}
	return nil
}

// examine prints what a target offers, of the nine paths and besides, and why not the rest.
// Named says that the user asks about this very target.
func examine(ctx context.Context, s Streams, spec target.Spec, named bool) (err error) {
	t, err := registry.Target(spec)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	// What it says is written when nothing of it is left: whoever reads may end this program, as head does.
	to, said := s.Out, new(strings.Builder)
	s.Out = said
	defer func() {
		err = errors.Join(err, t.Close())
		fmt.Fprint(to, said)
	}()
	facts, err := inspect(ctx, s, spec, t)
	if err != nil {
		return fmt.Errorf("%s: %w", spec.Label(), err)
	}
	var no refusals
	paths, besides := offers()
	also := []string{fmt.Sprintf("%d of %d paths", no.paths(t, paths), len(paths))}
	for _, b := range besides {
		err := allowed(ctx, t, b.Workload)
		switch {
		case err == nil:
			also = append(also, b.Name)
		case len(facts) > 0, named && b.Workload.Traits().Needs.Volume:
			no.add(b.Name, err) // else it is none of what the target is for
		}
	}
	return report.OfferText(s.Out, report.Offer{Target: spec.Label(), Offered: also, Refusals: no, Facts: facts})
}

// offers are what targets may offer: network paths, and what is none.
func offers() (paths, besides []family.Sample) {
	for _, f := range registry.Families() {
		for _, o := range f.Offers {
			if o.Workload.Traits().Needs.Path != "" {
				paths = append(paths, o)
			} else {
				besides = append(besides, o)
			}
		}
	}
	return paths, besides
}

// allowed says why a workload cannot be measured on a target, or not by this user.
func allowed(ctx context.Context, t target.Target, w family.Workload) error {
	if err := runner.Measurable(registry.Families().Tools(), t, w); err != nil {
		return err
	}
	if g, ok := t.(target.Guarded); ok {
		if err := g.Allowed(ctx, w.Traits().Needs); err != nil {
			return result.NotSupported(err.Error())
		}
	}
	return nil
}

// refusals are what a target does not offer, by reason.
type refusals []report.Refusal

func (r *refusals) add(name string, err error) {
	reason := err.Error()
	if !errors.Is(err, result.ErrNotSupported) {
		reason = "could not tell: " + reason
	}
	i := slices.IndexFunc(*r, func(one report.Refusal) bool { return one.Reason == reason })
	if i < 0 {
		*r = append(*r, report.Refusal{What: []string{name}, Reason: reason})
		return
	}
	(*r)[i].What = append((*r)[i].What, name)
}

// paths adds the paths that a target does not offer, and the tools that cannot measure those that it does; it returns
// how many it offers.
func (r *refusals) paths(t target.Target, paths []family.Sample) (offered int) {
	var last family.Workload
	for _, p := range paths {
		if err := runner.Measurable(registry.Families().Tools(), t, p.Workload); err != nil {
			r.add(p.Name, err)
			continue
		}
		offered, last = offered+1, p.Workload
	}
	if offered == 0 {
		if len(*r) == 1 {
			(*r)[0].What = []string{"any path"}
		}
		return 0
	}
	for _, by := range registry.Families().Tools() {
		if by.Supports(last) != nil {
			continue
		}
		if err := runner.Measurable(by, t, last); err != nil {
			r.add("--tool "+by.Name(), err)
		}
	}
	return offered
}

// inspect asks for the facts of a target that has to be reached before it can be said what it offers.
func inspect(ctx context.Context, s Streams, spec target.Spec, t target.Target) ([]result.Fact, error) {
	k, err := registry.FindKind(spec.Kind)
	if err != nil || !k.Inspect {
		return nil, err
	}
	warnings, err := t.Begin(ctx, target.Plan{Experiment: "doctor", Share: true, Placements: placements(t)})
	for _, w := range warnings {
		warn(s.Err, spec.Label()+": "+w)
	}
	if err != nil && !errors.Is(err, result.ErrNotSupported) { // else it is among the refusals
		return nil, err
	}
	return t.Facts(ctx)
}

// placements are those of all that could be measured on a target, by any tool. An application may be far away, and
// is not asked.
func placements(t target.Target) []target.Placement {
	paths, _ := offers()
	var all []family.Workload
	for _, p := range paths {
		all = append(all, p.Workload)
	}
	for _, s := range registry.Families().Suites() {
		for _, c := range s.Cases {
			all = append(all, c.Workload)
		}
	}
	var list []target.Placement
	for _, by := range registry.Families().Tools() {
		for _, w := range all {
			p := runner.Placement(by, w, 0)
			if p.Application == "" && !slices.Contains(list, p) && runner.Measurable(by, t, w) == nil {
				list = append(list, p)
			}
		}
	}
	return list
}
