package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/runner"
	"github.com/knotmeter/knotmeter/internal/stats"
)

func newPlan(s Streams, version string) *cobra.Command {
	var o options
	var output string
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what run would do, and what it could see",
		Long: `Show the cases, blocks and minutes of an experiment, and the smallest difference that it
could show with a probability of 80 %. Nothing is measured and nothing is written.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.readFile(c.Flags()); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.plan(s, version, output)
		},
	}
	o.register(c)
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

// plan resolves an experiment as run does, and prints it.
func (o *options) plan(s Streams, version, output string) error {
	if output != "table" && output != "json" {
		return fmt.Errorf("--output: %q is not one of table, json", output)
	}
	var x experiment
	defer x.close()
	ro, err := o.resolvable(&x, version)
	if err != nil {
		return err
	}
	e, err := runner.Resolve(ro)
	if err != nil {
		return err
	}
	p := runner.NewPlan(e, nil)
	seen := detectable(e)
	if output == "json" {
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(planDocument{Schema: "knotmeter/plan/v1", Experiment: e, Runs: p.Runs, Seconds: p.Seconds, Detectable: seen})
	}
	return printPlan(s, e, p, seen)
}

// A planDocument is plan's output as JSON.
type planDocument struct {
	Schema     string            `json:"schema"`
	Experiment result.Experiment `json:"experiment"`
	Runs       int               `json:"runs"`
	Seconds    float64           `json:"seconds"`
	Detectable []visible         `json:"detectable"`
}

// visible is the smallest change that a primary comparison shows with a probability of 80 %, if the
// difference of a pair of runs has this standard deviation. Null: these blocks can show nothing.
type visible struct {
	Spread float64  `json:"spread"` // of a pair's log ratio
	Change *float64 `json:"change"` // as a fraction
}

const power = 0.8

// detectable works the smallest visible change out for a quiet, a usual and a noisy path: how much
// pairs of runs differ is known only once some have been measured.
func detectable(e result.Experiment) []visible {
	level := e.Design.Alpha / float64(max(1, primaries(e)))
	shift := stats.DetectableShift(e.Design.Blocks, level, power, stats.OneLook{})
	var list []visible
	for _, spread := range []float64{0.005, 0.02, 0.05} {
		v := visible{Spread: spread}
		if change := math.Expm1(shift * spread); !math.IsInf(change, 0) {
			v.Change = &change
		}
		list = append(list, v)
	}
	return list
}

// primaries is the number of primary comparisons, among which alpha is shared.
func primaries(e result.Experiment) int {
	n := 0
	for _, c := range e.Cases {
		if c.Role == result.Primary {
			n += len(e.Targets) - 1
		}
	}
	return n
}

func printPlan(s Streams, e result.Experiment, p runner.Plan, seen []visible) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, baseline %s\n\n", e.Suite, strings.Join(targetNames(e.Targets), ", "), e.Baseline)
	for _, c := range p.Cases {
		fmt.Fprintf(&b, "  %-42s %-12s %4d runs %7s\n", c.Name, c.Role, c.Runs, clock(c.Seconds))
	}
	fmt.Fprintf(&b, "\n%d blocks, %d runs of %.3g s after %.3g s of warm-up: about %s\n", p.Blocks, p.Runs, e.Design.Duration, e.Design.Warmup, clock(p.Seconds))
	if budget := e.Design.Budget; budget > 0 && budget < p.Seconds {
		fmt.Fprintf(&b, "The budget of %s ends it before that.\n", clock(budget))
	}
	fmt.Fprintf(&b, "\nPrimary comparisons: %d, which share alpha = %g. With a probability of %.0f %%,\neach of them shows a change of at least\n", primaries(e), e.Design.Alpha, 100*power)
	for i, v := range seen {
		name := []string{"quiet path", "usual path", "noisy path"}[i]
		if v.Change == nil {
			fmt.Fprintf(&b, "  %s: none at all; these are too few blocks\n", name)
			continue
		}
		fmt.Fprintf(&b, "  %4.1f %%  on a %s (pairs of runs differ by %.1f %%)\n", 100**v.Change, name, 100*v.Spread)
	}
	for _, n := range e.NotMeasured {
		fmt.Fprintf(&b, "\nnot measured: %s on %s: %s\n", n.Case, n.Target, n.Reason)
	}
	_, err := s.Out.Write([]byte(b.String()))
	return err
}
