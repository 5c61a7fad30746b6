package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/family"
	"github.com/knotmeter/knotmeter/internal/lab"
	"github.com/knotmeter/knotmeter/internal/registry"
	"github.com/knotmeter/knotmeter/internal/report"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/targets"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func newDoctor(s Streams) *cobra.Command {
	var texts []string
	var rbac rbacForm
	var output string
	var verbose bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what can be measured here, and explain what cannot",
		Long: `Check what can be measured on targets, and explain what cannot, with the remedy.
Without a target, check this machine's kernel and every datapath of the lab.

With --rbac, print the rights that a cluster has to grant.`,
		Example: `  knotmeter doctor
  knotmeter doctor kube:production
  knotmeter doctor kube:production --rbac | kubectl apply -f -`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := oneOf("--output", output, tableOrJSON); err != nil {
				return err
			}
			if err := setTargetFlag(c.Flags(), args); err != nil {
				return err
			}
			specs, err := await(c.Context(), func() ([]result.Spec, error) { return parseTargets(texts) })
			if err != nil {
				return err
			}
			if rbac != "" {
				return printRBAC(c.Context(), s, specs, rbac == wideRBAC)
			}
			return doctor{s, output, verbose}.examine(c.Context(), specs)
		},
	}
	acceptTargetArgs(c)
	c.Flags().StringArrayVar(&texts, targetFlag, nil, "`TARGET` check this target, the same as an argument; repeated")
	c.Flags().StringVarP(&output, "output", "o", "table", printedAs(tableOrJSON))
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "also the facts of each target")
	c.Flags().Var(&rbac, "rbac",
		"`SCOPE` print the rights to grant, as manifests: in a namespace, or in the whole cluster")
	c.Flags().Lookup("rbac").NoOptDefVal = narrowRBAC
	completeFlag(c, "output", tableOrJSON)
	return c
}

// A diagnosis is the JSON output of doctor: knotmeter/doctor/v1.
type diagnosis struct {
	Schema  string     `json:"schema"`
	Machine []findings `json:"machine"`
	Targets []examined `json:"targets"`
}

const doctorSchema = "knotmeter/doctor/v1"

// findings are the features of this machine that a kind of target can use.
type findings struct {
	Kind     string        `json:"kind"`
	Features []lab.Finding `json:"features"`
}

// An examined target lists what can be measured on it, and what cannot.
type examined struct {
	Target       string        `json:"target"`
	Spec         string        `json:"spec"`
	PathsOffered int           `json:"paths_offered"`
	Paths        int           `json:"paths"`
	Also         []string      `json:"also"`
	Refusals     refusals      `json:"refusals"`
	Facts        []result.Fact `json:"facts"`
}

// offer returns the text form of e.
func (e examined) offer() report.Offer {
	offered := append([]string{fmt.Sprintf("%d of %d paths", e.PathsOffered, e.Paths)}, e.Also...)
	return report.Offer{Target: e.Target, Offered: offered, Refusals: e.Refusals, Facts: e.Facts}
}

// A doctor examines targets and prints the results: text for each target at once, or one JSON document at the end.
type doctor struct {
	Streams
	output  string
	verbose bool // print facts as text; JSON always has them
}

// examine examines these targets, or this machine if there are none.
func (d doctor) examine(ctx context.Context, specs []result.Spec) error {
	found := diagnosis{Schema: doctorSchema, Machine: []findings{}, Targets: []examined{}}
	named, hiddenFacts := len(specs) > 0, 0
	if !named {
		var err error
		if found.Machine, specs, err = d.machine(); err != nil {
			return err
		}
	}
	for _, spec := range specs {
		e, err := examine(ctx, d.Streams, spec, named)
		if err != nil {
			return err
		}
		found.Targets = append(found.Targets, e)
		if d.output == "table" {
			offer := e.offer()
			if !d.verbose {
				hiddenFacts += len(offer.Facts)
				offer.Facts = nil
			}
			if err := report.OfferText(d.Out, offer); err != nil {
				return err
			}
		}
	}
	if hiddenFacts > 0 {
		fmt.Fprintf(d.Out, "\n--verbose prints what else is known: %s.\n", unit.Plural(hiddenFacts, "fact"))
	}
	if d.output == "json" {
		return printJSON(d.Out, found)
	}
	return nil
}

// machine checks the features of this machine, and lists the targets that use them.
func (d doctor) machine() (found []findings, available []result.Spec, err error) {
	found = []findings{}
	for _, k := range registry.Kinds() {
		if k.Features == nil {
			continue
		}
		features, err := k.Features()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		found = append(found, findings{k.Name, features})
		if d.output == "table" {
			fmt.Fprintln(d.Out, featureText(features))
		}
		for _, line := range k.Targets {
			spec, err := result.ParseSpec(line.Spec)
			if err != nil {
				return nil, nil, err
			}
			available = append(available, spec)
		}
	}
	return found, available, nil
}

// featureText returns features as text.
func featureText(features []lab.Finding) string {
	var b strings.Builder
	for _, f := range features {
		fmt.Fprintf(&b, "%-24s %s, for %s\n", f.Name, f.Answer, f.Use)
		if f.Reason != "" {
			fmt.Fprintf(&b, "    %s\n", f.Reason)
		}
		if f.Remedy != "" {
			fmt.Fprintf(&b, "    remedy: %s\n", f.Remedy)
		}
	}
	return b.String()
}

// printJSON prints an indented JSON document.
func printJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// An rbacForm is the flag --rbac: the scope of the printed rights.
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

// printRBAC prints manifests with the rights that each target needs.
func printRBAC(ctx context.Context, s Streams, specs []result.Spec, wide bool) error {
	if len(specs) == 0 {
		return errors.New("--rbac: name a cluster, such as kube:production")
	}
	for _, spec := range specs {
		k, err := registry.FindKind(spec.Kind)
		if err != nil {
			return err
		}
		if k.RBAC == nil {
			return fmt.Errorf("--rbac: %s needs no rights of a cluster", spec.Label())
		}
		manifests, err := await(ctx, func() (string, error) { return k.RBAC(spec, wide) })
		if err != nil {
			return err
		}
		fmt.Fprint(s.Out, manifests)
	}
	return nil
}

// examine returns what can be measured on a target, and the reasons for the rest. It leaves nothing behind on the
// target. named reports whether the user named this target.
func examine(ctx context.Context, s Streams, spec result.Spec, named bool) (e examined, err error) {
	t, err := await(ctx, func() (targets.Target, error) { return registry.Target(spec) }) // it may read files
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	paths, others := samples()
	e = examined{Target: spec.Label(), Spec: spec.Text, Paths: len(paths), Also: []string{}, Refusals: refusals{}}
	if e.Facts, err = inspect(ctx, s, spec, t); err != nil {
		return e, fmt.Errorf("%s: %w", spec.Label(), err)
	}
	e.PathsOffered = e.Refusals.paths(t, paths)
	for _, other := range others {
		err := checkWorkload(ctx, t, other.Workload)
		switch {
		case err == nil:
			e.Also = append(e.Also, other.Name)
		case len(e.Facts) > 0, named && other.Workload.Traits().Needs.Volume:
			e.Refusals.add(other.Name, err) // otherwise the kind is not expected to support it
		}
	}
	return e, nil
}

// samples returns the sample workloads of all families: those of network paths, and the others.
func samples() (paths, others []family.Sample) {
	for _, f := range registry.Families() {
		for _, o := range f.Offers {
			if o.Workload.Traits().Needs.Path != "" {
				paths = append(paths, o)
			} else {
				others = append(others, o)
			}
		}
	}
	return paths, others
}

// checkWorkload returns an error if a workload cannot be measured on a target, or not with this user's permissions.
func checkWorkload(ctx context.Context, t targets.Target, w family.Workload) error {
	if err := runner.Measurable(registry.Families().Tools(), t, w); err != nil {
		return err
	}
	if g, ok := t.(targets.Guarded); ok {
		if err := g.Allowed(ctx, w.Traits().Needs); err != nil {
			return result.NotSupported(err.Error())
		}
	}
	return nil
}

// refusals list what a target does not support, by reason.
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

// paths adds the network paths that a target does not support, and the tools that cannot measure the supported ones. It
// returns the number of supported paths.
func (r *refusals) paths(t targets.Target, paths []family.Sample) (offered int) {
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

// inspect returns the facts of a target if it must be contacted to see what it supports, else none.
func inspect(ctx context.Context, s Streams, spec result.Spec, t targets.Target) ([]result.Fact, error) {
	k, err := registry.FindKind(spec.Kind)
	if err != nil || !k.Inspect {
		return []result.Fact{}, err
	}
	measurable, err := await(ctx, func() ([]targets.Placement, error) { return placements(t), nil })
	if err != nil {
		return nil, err
	}
	warnings, err := t.Begin(ctx, targets.Plan{Experiment: "doctor", Share: true, Placements: measurable})
	for _, w := range warnings {
		warn(s.Err, spec.Label()+": "+w)
	}
	if err != nil && !errors.Is(err, result.ErrNotSupported) { // ErrNotSupported becomes a refusal
		return nil, err
	}
	facts, err := runner.Facts(ctx, t, runner.FactsTime)
	if err != nil {
		return nil, fmt.Errorf("facts: %w", err)
	}
	return facts, nil
}

// placements returns the placements of everything that can be measured on a target, by any tool. Applications are left
// out, so that no requests are sent to them.
func placements(t targets.Target) []targets.Placement {
	paths, _ := samples()
	var all []family.Workload
	for _, p := range paths {
		all = append(all, p.Workload)
	}
	for _, s := range registry.Families().Suites() {
		for _, c := range s.Cases {
			all = append(all, c.Workload)
		}
	}
	var list []targets.Placement
	for _, by := range registry.Families().Tools() {
		for _, w := range all {
			p := runner.Placement(by, w, 0)
			if p.Application == "" && !slices.ContainsFunc(list, p.Equal) && runner.Measurable(by, t, w) == nil {
				list = append(list, p)
			}
		}
	}
	return list
}
