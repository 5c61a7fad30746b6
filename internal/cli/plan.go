package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/nearest"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/target"
	"github.com/knotmeter/knotmeter/internal/unit"
)

func newPlan(s Streams, version string) *cobra.Command {
	var o options
	var p planner
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what run would do, and what it could see",
		Long: `Show the cases, blocks and minutes of an experiment, and the smallest difference that it
could show with a probability of 80 %. Nothing is measured and nothing is written.

How many blocks it takes depends on how much pairs of runs differ here. --from takes that,
and how long runs take, from earlier results; --pilot measures four blocks of the primary
cases first, and keeps nothing of them.

With -o json: knotmeter/plan/v1, as docs/schema/plan-v1.json describes it.`,
		Example: `  knotmeter plan --target lab:native --target lab:vxlan --suite network:quick --pilot --budget 5m
  knotmeter plan -f experiment.yaml --from results/2026-12-01-a1b2 -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.readFile(c.Flags()); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			if err := p.check(); err != nil {
				return err
			}
			return p.plan(c.Context(), s, &o, version)
		},
	}
	o.register(c, settings)
	f := c.Flags()
	f.StringVarP(&p.output, "output", "o", "table", "table or json")
	f.StringVar(&p.from, "from", "", "take the spread and the duration of runs from this results directory")
	f.BoolVar(&p.pilot, "pilot", false, "measure four blocks first, to know the spread and the duration of runs")
	f.StringVar(&p.progress, "progress", "auto", "how the progress of a pilot is shown on stderr: "+strings.Join(progressModes(), ", "))
	return c
}

// A planner is the flags of plan alone.
type planner struct {
	output, from, progress string
	pilot                  bool
}

func (p planner) check() error {
	switch {
	case p.output != "table" && p.output != "json":
		return fmt.Errorf("--output: %q is not one of %s", p.output, nearest.List(p.output, []string{"table", "json"}))
	case p.pilot && p.from != "":
		return errors.New("--pilot: --from says already how much runs differ; leave one of them out")
	}
	return nil
}

// plan resolves an experiment as run does, and prints it.
func (p planner) plan(ctx context.Context, s Streams, o *options, version string) error {
	show, err := newProgress(p.progress, s)
	if err != nil {
		return err
	}
	var x experiment
	defer x.close(s.Err)
	ro, err := o.resolvable(&x, version)
	if err != nil {
		return err
	}
	e, _, err := resolve(ro)
	if err != nil {
		return err
	}
	if err := warnOfDesign(s.Err, e); err != nil {
		return err
	}
	d := planDocument{Schema: "knotmeter/plan/v1", Experiment: e, Consent: concerns(e, ro.Targets)}
	if d.Rotation, err = rotation(ctx, ro.Targets); err != nil {
		return err
	}
	var k known
	if p.pilot {
		if err := consent(d.Consent, o.yes); err != nil {
			return err
		}
		announce(s.Err, destinations(e, ro.Targets))
	}
	switch {
	case p.from != "":
		k, err = earlier(p.from, e)
	case p.pilot:
		if _, err := o.begin(ctx, s.Err, e, ro.Targets, ro.Tool); err != nil {
			return fmt.Errorf("--pilot: %w", err)
		}
		k, err = pilot(ctx, runner.Config{Experiment: e, Targets: ro.Targets, Families: ro.Families, Tool: ro.Tool, Events: show, Check: checkRun})
	}
	if err != nil {
		return err
	}
	if err := d.predict(k); err != nil {
		return err
	}
	if p.output == "json" {
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	return d.print(s)
}

// A planDocument is plan's output as JSON.
type planDocument struct {
	Schema     string            `json:"schema"`
	Experiment result.Experiment `json:"experiment"`
	Runs       int               `json:"runs"`    // at most
	Seconds    float64           `json:"seconds"` // at most
	Detectable []visible         `json:"detectable"`
	// Rotation is the pairs of nodes, client's and server's, that blocks are on in turn, by target; only of targets that
	// do not have the same for all.
	Rotation map[string][]nodePair `json:"rotation,omitempty"`
	Forecast *forecast             `json:"forecast,omitempty"` // from an earlier measurement; else nil
	Consent  []concern             `json:"consent,omitempty"`  // what run asks --yes for

	plan runner.Plan
}

// A nodePair is the nodes of a run.
type nodePair struct {
	Client string `json:"client"`
	Server string `json:"server"`
}

// rotation asks the targets for their pairs of nodes.
func rotation(ctx context.Context, targets []runner.Target) (map[string][]nodePair, error) {
	pairs := map[string][]nodePair{}
	for _, t := range targets {
		r, is := t.Places.(target.Rotator)
		if !is {
			continue
		}
		nodes, err := r.Nodes(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		for _, n := range nodes {
			pairs[t.Name] = append(pairs[t.Name], nodePair{n[0], n[1]})
		}
	}
	return pairs, nil
}

// visible is what a primary comparison shows if the difference of a pair of runs has this standard
// deviation.
type visible struct {
	Spread float64 `json:"spread"` // of a pair's log ratio
	// Change is the smallest that is shown with a probability of 80 %, as a fraction. Null: these
	// blocks can show nothing.
	Change compare.Number `json:"change"`
	// The blocks that are expected until there is a verdict, if the targets are alike and if they
	// differ by delta.
	BlocksAlike     compare.Number `json:"blocks_alike"`
	BlocksDifferent compare.Number `json:"blocks_different"`
}

const power = 0.8

// examples are the spreads of the paths that exampleNames names: how much pairs of runs differ is known only once some
// have been measured.
var (
	examples     = []float64{0.005, 0.02, 0.05}
	exampleNames = []string{"quiet path", "usual path", "noisy path"}
)

// predict works out everything that the plan says.
func (d *planDocument) predict(k known) error {
	t, err := newTest(d.Experiment)
	if err != nil {
		return err
	}
	if n := primaries(d.Experiment); n > 0 {
		for _, spread := range examples {
			d.Detectable = append(d.Detectable, t.at(spread, d.Experiment.Design.Alpha/float64(n)))
		}
	}
	d.plan = runner.NewPlan(d.Experiment, k.estimate)
	d.Runs, d.Seconds = d.plan.Runs, d.plan.Seconds
	if k.source.Kind == "" {
		return nil
	}
	d.Forecast, err = newForecast(d.Experiment, d.plan, k, t)
	return err
}

// A test is how the comparisons of an experiment will be decided.
type test struct {
	design result.Design
	looks  stats.Design
}

func newTest(e result.Experiment) (test, error) {
	t := test{e.Design, stats.OneLook{}}
	if len(e.Design.Looks) == 0 {
		return t, nil
	}
	g, err := stats.NewGroupSequential(e.Design.Looks)
	if err != nil {
		return t, fmt.Errorf("--looks: %w", err)
	}
	t.looks = g
	return t, nil
}

// at is what a comparison at error probability alpha sees at a spread.
func (t test) at(spread, alpha float64) visible {
	v := visible{Spread: spread, Change: t.change(spread, alpha, t.design.Blocks)}
	v.BlocksAlike, v.BlocksDifferent = compare.Number(t.design.Blocks), compare.Number(t.design.Blocks)
	if len(t.design.Looks) > 0 {
		margin := math.Log1p(t.design.Delta)
		v.BlocksAlike = compare.Number(stats.ExpectedPairs(spread, 0, margin, alpha, t.looks))
		v.BlocksDifferent = compare.Number(stats.ExpectedPairs(spread, margin, margin, alpha, t.looks))
	}
	return v
}

// change is the smallest that so many blocks show with a probability of 80 %.
func (t test) change(spread, alpha float64, blocks int) compare.Number {
	return compare.Number(math.Expm1(spread * stats.DetectableShift(blocks, alpha, power, t.looks)))
}

// enough is the number of blocks, fixed beforehand, that shows delta with a probability of 80 %; 0 if
// no number that an experiment may have does.
func (t test) enough(spread, alpha float64) int {
	margin := math.Log1p(t.design.Delta)
	shows := func(n int) bool { return spread*stats.DetectableShift(n, alpha, power, stats.OneLook{}) <= margin }
	low, high := 1, runner.MaxBlocks
	if !shows(high) {
		return 0
	}
	for low < high {
		middle := (low + high) / 2
		if shows(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// primaries is the number of primary comparisons, among which alpha is shared.
func primaries(e result.Experiment) int {
	contests := len(e.Targets) - 1
	if e.Design.AllPairs {
		contests = len(e.Targets) * (len(e.Targets) - 1) / 2
	}
	n := 0
	for _, c := range e.Cases {
		if c.Role == result.Primary {
			n += contests
		}
	}
	return n
}

// warnOfDesign tells of a design that cannot give what it is for.
func warnOfDesign(errs io.Writer, e result.Experiment) error {
	warning, err := tooFew(e)
	if err == nil && warning != "" {
		fmt.Fprintln(errs, "warning: "+warning)
	}
	return err
}

// tooFew is a warning about a design in which no primary comparison can get a verdict, whatever is measured; empty where
// one can.
func tooFew(e result.Experiment) (string, error) {
	n := primaries(e)
	if n == 0 {
		return "", nil
	}
	t, err := newTest(e)
	if err != nil {
		return "", err
	}
	alpha := e.Design.Alpha / float64(n)
	if first := stats.MinPairs(alpha, t.looks); first > 0 && first <= e.Design.Blocks {
		return "", nil
	}
	what, instead := "the primary comparison", "--blocks"
	if n > 1 {
		what = fmt.Sprintf("any of the %d primary comparisons, which share alpha", n)
	}
	if len(e.Design.Looks) > 0 {
		instead = "a last look after"
	}
	// The last of several looks may spend all of alpha where none before it can decide anything, as a single one may.
	least := stats.MinPairs(alpha, stats.OneLook{})
	if least == 0 {
		return fmt.Sprintf("no number of blocks gives a verdict on %s, at --alpha %g; take a larger one", what, e.Design.Alpha), nil
	}
	return fmt.Sprintf("%s cannot give a verdict on %s; it takes %s %d or more",
		unit.Plural(e.Design.Blocks, "block"), what, instead, least), nil
}

// print writes the plan as a text of at most 80 columns.
func (d *planDocument) print(s Streams) error {
	var p prose.Page
	e := d.Experiment
	p.Paragraph("", "  ", fmt.Sprintf("%s on %s, baseline %s", e.Suite, strings.Join(targetNames(e.Targets), ", "), e.Baseline))
	p.Line("")
	for _, c := range d.plan.Cases {
		p.Line(fmt.Sprintf("  %s %-12s %4d runs %7s", prose.Left(prose.Plain(c.Name), 42), c.Role, c.Runs, clock(c.Seconds)))
	}
	p.Line("")
	runs := fmt.Sprintf("%d runs of %.3g s after %.3g s of warm-up: about %s",
		d.Runs, e.Design.Duration, e.Design.Warmup, clock(d.Seconds))
	if len(e.Design.Looks) > 1 {
		p.Paragraph("", "", fmt.Sprintf("At most %d blocks, looked at after %s;", e.Design.Blocks, looksWords(e.Design.Looks)))
		p.Line("at most " + runs)
	} else {
		p.Line(fmt.Sprintf("%d blocks, %s", e.Design.Blocks, runs))
	}
	if budget := e.Design.Budget; budget > 0 && budget < d.Seconds {
		p.Line(fmt.Sprintf("The budget of %s ends it before that.", clock(budget)))
	}
	if e.Design.Parallel {
		p.Line("The runs of a case in a block are at the same time, on all targets.")
	}
	d.printRotation(&p)
	p.Line("")
	switch {
	case len(d.Detectable) == 0:
		p.Line("There is nothing to decide: no primary case has two targets.")
	case d.Forecast == nil:
		d.printExamples(&p)
	default:
		d.printForecast(&p)
	}
	for _, g := range e.Gates {
		p.Line("")
		p.Paragraph("gate: ", "  ", fmt.Sprint(g))
	}
	if len(d.Consent) > 0 {
		p.Line("")
		p.Line("run needs --yes:")
	}
	for _, c := range d.Consent {
		p.Paragraph("  ", "    ", c.String())
	}
	for _, n := range e.NotMeasured {
		p.Line("")
		p.Paragraph("not measured: ", "  ", fmt.Sprintf("%s on %s: %s", n.Case, n.Target, n.Reason))
	}
	_, err := io.WriteString(s.Out, p.String())
	return err
}

// mostPairs is how many pairs of nodes are written out.
const mostPairs = 6

// printRotation writes which nodes the blocks are on in turn.
func (d *planDocument) printRotation(p *prose.Page) {
	for _, t := range d.Experiment.Targets {
		pairs := d.Rotation[t.Name]
		if len(pairs) == 0 {
			continue
		}
		p.Paragraph("", "  ",
			fmt.Sprintf("Blocks on %s take %d pairs of nodes in turn (client's, server's):", t.Name, len(pairs)))
		for i, n := range pairs[:min(mostPairs, len(pairs))] {
			p.Paragraph("  ", "    ", fmt.Sprintf("block %d: %s, %s", i+1, n.Client, n.Server))
		}
		if more := len(pairs) - mostPairs; more > 0 {
			p.Line(fmt.Sprintf("  and %d more", more))
		}
	}
}

// looksWords are the numbers of blocks after which the data are looked at.
func looksWords(looks []int) string {
	var words []string
	for _, n := range looks {
		words = append(words, strconv.Itoa(n))
	}
	return prose.Enumerate(words)
}

// printExamples writes what is seen at the example spreads.
func (d *planDocument) printExamples(p *prose.Page) {
	design := d.Experiment.Design
	p.Paragraph("", "", fmt.Sprintf(
		"Primary comparisons: %d, which share alpha = %g. With a probability of %.0f %%, each of them shows a change of at least",
		primaries(d.Experiment), design.Alpha, 100*power))
	for i, v := range d.Detectable {
		if !v.Change.Known() {
			p.Line(fmt.Sprintf("  %s: none at all; these are too few blocks", exampleNames[i]))
			continue
		}
		p.Line(fmt.Sprintf("  %4.1f %%  on a %s (pairs of runs differ by %.1f %%)", 100*v.Change, exampleNames[i], 100*v.Spread))
	}
	if len(design.Looks) > 1 {
		p.Paragraph("", "",
			fmt.Sprintf("and is decided, if the targets are alike or differ by %.3g %%, after about", 100*design.Delta))
		for i, v := range d.Detectable {
			p.Line(fmt.Sprintf("  %4.1f or %4.1f blocks on a %s", v.BlocksAlike, v.BlocksDifferent, exampleNames[i]))
		}
	}
	p.Paragraph("", "", "How much pairs of runs differ here is not known: --pilot measures it, --from takes it from earlier results.")
}
