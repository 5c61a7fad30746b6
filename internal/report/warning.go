package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/stats"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// WarningText returns the text of a warning, without the full stop that ends it as a sentence.
func WarningText(w compare.Warning) string {
	text := string(w.Code) // a code of a later version
	if render, known := warningTexts[w.Code]; known {
		text = render(w)
	}
	if len(w.In) > 0 {
		return experiments(w.In) + ": " + text
	}
	return text
}

func warningSentence(w compare.Warning) string { return WarningText(w) + "." }

func warningSentences(warnings []compare.Warning) []string {
	var list []string
	for _, w := range warnings {
		list = append(list, warningSentence(w))
	}
	return list
}

// errorProbability ends a warning about a choice that was made after the runs.
const errorProbability = "the stated error probability holds for what is chosen before the results are seen"

// warningTexts has the text of each code, without its full stop.
var warningTexts = map[compare.Code]func(compare.Warning) string{
	compare.NoPairedRuns: func(w compare.Warning) string {
		return fmt.Sprintf("No block has a valid run with %s on both sides", w.Metrics[0])
	},
	compare.OneRun: always("One run is no basis for a comparison"),
	compare.FewOfPlanned: func(w compare.Warning) string {
		return fmt.Sprintf("Only %d of the %d blocks planned have a valid run on both sides", w.Count, w.Of)
	},
	compare.FewOfMeasured: func(w compare.Warning) string {
		return fmt.Sprintf("Only %d of the %d blocks measured have a valid run on both sides", w.Count, w.Of)
	},
	compare.BudgetSpent: func(w compare.Warning) string {
		return fmt.Sprintf("The experiment ended after %d of at most %d blocks of this case; its budget was %s",
			w.Count, w.Of, budgetText(w.Seconds))
	},
	compare.EndedEarly: func(w compare.Warning) string {
		return fmt.Sprintf("The experiment was ended after %d of at most %d blocks of this case", w.Count, w.Of)
	},
	compare.BeforeLastBlock: func(w compare.Warning) string {
		how := "was interrupted"
		if w.Seconds > 0 {
			how = "with a budget of " + budgetText(w.Seconds) + " ended"
		}
		return fmt.Sprintf("The experiment %s after %d of %d planned blocks; with a fixed number of blocks there is no "+
			"interval and no verdict before the last: ended whenever the interval excludes 0, it would err too often. "+
			"Continue it with --resume", how, w.Count, w.Of)
	},
	compare.StoppedEarly: always("The case stopped early, and what stops early is more often overestimated than not: " +
		"trust the interval more than the estimate"),
	compare.LoopsDiffer: func(w compare.Warning) string {
		return fmt.Sprintf("The loop of one side is %s and that of the other %s: their latencies do not mean the same",
			w.Loops[0], w.Loops[1])
	},
	compare.Unpaced: always("Unpaced: the sender sends as many datagrams as its CPU can, and throughput is what is left " +
		"of them at the receiver. It depends on the sender as much as on the path; read it together with " +
		"throughput-sent and loss, which is what the path or the receiver's buffer dropped"),
	compare.GeneratorLimit: func(w compare.Warning) string {
		return fmt.Sprintf("The generator was the limit in %s: what was measured there is the generator, not the path",
			countsText(w.Counts, "run"))
	},
	compare.SharedGeneratorLimit: func(w compare.Warning) string {
		return fmt.Sprintf("The generator was the limit in %s: its CPU does the work of the path too, so it is the cost "+
			"of both that shows", countsText(w.Counts, "run"))
	},
	compare.InvalidSharesDiffer: func(w compare.Warning) string {
		return countsText(w.Counts, "run") +
			" were invalid; a difference in that may itself be what the targets differ in"
	},
	compare.ManyInvalid: func(w compare.Warning) string {
		return countsText(w.Counts, "run") + " were invalid; the blocks that are left may be the easy ones"
	},
	compare.OrderOfRuns: func(w compare.Warning) string {
		return orderText(w) + "runs disturb those that follow"
	},
	compare.OrderOfVisits: func(w compare.Warning) string {
		return orderText(w) + "visits leave something behind for those that follow"
	},
	compare.RunsWarn: func(w compare.Warning) string {
		if len(w.Counts) == 0 {
			return recordedText("All runs", w)
		}
		return recordedText(countsText(w.Counts, "run"), w)
	},
	compare.RunsWarnMore: func(w compare.Warning) string {
		return fmt.Sprintf("The runs have %s", unit.Plural(w.Count, "more warning"))
	},
	compare.MetricNotShared: func(w compare.Warning) string {
		return fmt.Sprintf("The two sides do not both have %s in one unit, or neither says what is better; nothing is "+
			"compared", w.Metrics[0])
	},
	compare.FewRuns: func(w compare.Warning) string {
		return fmt.Sprintf("There are %d and %d runs; below %d on each side there is no verdict", w.Count, w.Of, w.Needed)
	},
	compare.Drift: always("The runs rise or fall from run to run, more than by chance: the interval does not cover " +
		"that, so there is no verdict"),
	compare.RunsDepend: func(w compare.Warning) string {
		return fmt.Sprintf("Successive runs resemble each other; the interval is %.2g times as wide for it", w.Factor)
	},
	compare.RunUnitDiffers: func(w compare.Warning) string {
		return fmt.Sprintf("Run %s has %s in %q, others in %q, or they disagree on what is better; nothing is compared",
			w.Runs[0], w.Metrics[0], w.Units[0], w.Units[1])
	},
	compare.BlockUnitDiffers: func(w compare.Warning) string {
		return fmt.Sprintf("Block %d has %s in %q on one side and in %q on the other, or they disagree on what is better; "+
			"nothing is compared", w.Block, w.Metrics[0], w.Units[0], w.Units[1])
	},
	compare.RunsUnusable: func(w compare.Warning) string {
		return fmt.Sprintf("%s without a usable %s, left out: %s",
			unit.Plural(len(w.Runs), "run"), w.Metrics[0], prose.Some(w.Runs))
	},
	compare.BlocksUnusable: func(w compare.Warning) string {
		return fmt.Sprintf("In %s a valid run has no usable %s; left out", unit.Plural(w.Count, "block"), w.Metrics[0])
	},
	compare.PairsPastLook: func(w compare.Warning) string {
		return fmt.Sprintf("Of %d pairs the first %d count, which is the last look that they reached", w.Of, w.Count)
	},
	compare.WideSpread: func(w compare.Warning) string {
		return "The change varies widely from block to block: its standard deviation is " + format(w.Spread, unit.Ratio)
	},
	compare.OnlyZeros: always("Every value is 0 on both sides; there is no ratio to judge"),
	compare.NoRatio: func(w compare.Warning) string {
		return fmt.Sprintf("%d of %d values are 0 or below and have no ratio; the difference is given instead, without a "+
			"verdict", w.Count, w.Of)
	},
	compare.StepUnknown: always("The resolution of the metric is unknown here, because all values are the same, a " +
		"search ended without a rate that failed or trials ended before the change showed; the interval is wider by a " +
		"factor of two on either side"),
	compare.CoarseStep: func(w compare.Warning) string {
		return fmt.Sprintf("The metric moves in steps of about %s here, more than the %.3g %% that matter; the interval is "+
			"wider by one step on either side", format(w.Step, unit.Ratio), 100*w.Delta)
	},
	compare.OneOfMany: func(w compare.Warning) string {
		return fmt.Sprintf("The interval alone would say %s; among %d exploratory comparisons that is not enough",
			w.Verdict, w.Count)
	},
	compare.BlocksExcluded: func(w compare.Warning) string {
		return fmt.Sprintf("Left out: %s, where the audit found an error (%s)",
			unit.Plural(w.Count, "block"), strings.Join(w.Rules, ", "))
	},
	compare.RunsExcluded: func(w compare.Warning) string {
		return fmt.Sprintf("Left out: %s on %s, where the audit found an error (%s)",
			unit.Plural(w.Count, "run"), w.Targets[0], strings.Join(w.Rules, ", "))
	},
	compare.AuditDoubts: func(w compare.Warning) string {
		return fmt.Sprintf("The audit doubts this (%s)", strings.Join(w.Rules, ", "))
	},

	compare.NotFinite: func(w compare.Warning) string {
		return fmt.Sprintf("%d of %d values are not finite and are left out", w.Count, w.Of)
	},
	compare.NoPairs:     always("There are no pairs"),
	compare.EmptySample: always("One of the samples is empty"),
	compare.PastLastLook: func(w compare.Warning) string {
		return fmt.Sprintf("With %d pairs there is no interval: the design has its last look after %d", w.Count, w.Of)
	},
	compare.NeverBounded: func(w compare.Warning) string {
		return fmt.Sprintf("With %s no interval at %s confidence has an end, nor will it have one at a later look",
			unit.Plural(w.Count, "pair"), stats.Percent(w.Level))
	},
	compare.Unbounded: func(w compare.Warning) string {
		return fmt.Sprintf("With %s no interval at %s confidence has an end; it takes %d",
			unit.Plural(w.Count, "pair"), stats.Percent(w.Level), w.Needed)
	},
	compare.UnboundedSamples: func(w compare.Warning) string {
		return fmt.Sprintf("With %d and %d values no interval at %s confidence has an end; it takes %d in each sample",
			w.Count, w.Of, stats.Percent(w.Level), w.Needed)
	},
	compare.AllSame: func(w compare.Warning) string {
		return fmt.Sprintf("All %d differences are the same number; measurements that are not quantised never are", w.Count)
	},
	compare.ManyZeros: func(w compare.Warning) string {
		return fmt.Sprintf("%d of %d differences are exactly 0; the metric is coarse", w.Count, w.Of)
	},

	compare.ClosedLoop: always("Closed loop: a request waits for the answer to the one before, so the time in which a " +
		"server stalls is hardly sampled"),
	compare.Parallel: always("The runs of a case in a block were measured at the same time, each on a target that " +
		"shares nothing with the others: what disturbs all of them cancels out, but no random order tells a target from " +
		"what happens to its own machines"),
	compare.InTurn: always("The targets were measured in turn, each in a visit of its own after its switch: the runs of " +
		"a pair are as far apart as the visits of a block, and the blocks are as many installations of each, as far as " +
		"a switch installs what is not in place"),
	compare.OneMachine: always("Client and server run on one machine and share its CPUs: costs are of both sides " +
		"together, and the network between them is the kernel's own"),
	compare.Imported: func(w compare.Warning) string {
		return fmt.Sprintf("These are runs of another tool (%s), without blocks: they are compared unpaired, and what "+
			"changed between them is part of every difference", w.Tool)
	},
	compare.ExperimentWarns: func(w compare.Warning) string { return w.Recorded.Text },
	compare.SitesWarn: func(w compare.Warning) string {
		return recordedText(countsText(w.Counts, "site"), w)
	},
	compare.UnplannedRuns: func(w compare.Warning) string {
		return fmt.Sprintf("%s of a case, target or block that the plan does not have, left out: %s",
			unit.Plural(len(w.Runs), "run"), prose.Some(w.Runs))
	},
	compare.RunTwice: func(w compare.Warning) string {
		return fmt.Sprintf("Block %d of %s has two runs on %s in attempt %d, %s and %s; the later one counts",
			w.Block, w.Cases[0], w.Targets[0], w.Attempt, w.Runs[0], w.Runs[1])
	},
	compare.OneSidedInvalid: func(w compare.Warning) string {
		var sides []string
		for _, c := range w.Counts {
			sides = append(sides, countsText([]compare.TargetCount{c}, "run"))
		}
		return fmt.Sprintf("Only one side has invalid runs: %s (%s). %s",
			w.Cases[0], strings.Join(sides, ", "), survivorsText)
	},
	compare.OneSidedInvalidIn: func(w compare.Warning) string {
		return fmt.Sprintf("In %d cases only one side has invalid runs: %s. %s",
			len(w.Cases), prose.Some(w.Cases), survivorsText)
	},
	compare.UnmatchedMetrics: func(w compare.Warning) string {
		var names []string
		for _, u := range w.Unmatched {
			names = append(names, fmt.Sprintf("%s %s in %q", u.Case, u.Metric, u.Unit))
		}
		return "Metrics that one side does not have in this unit, or of which neither says what is better, compared with " +
			"nothing: " + prose.Some(names)
	},
	compare.Trend: func(w compare.Warning) string {
		return fmt.Sprintf("From run to run these rise or fall, more than by chance: %s. Their intervals assume "+
			"independent runs and do not cover that", prose.Some(w.Cases))
	},
	compare.NotPaired: func(w compare.Warning) string {
		how := "two experiments are not paired: what changed between the two times"
		if w.Count > 2 {
			how = fmt.Sprintf("%d experiments are not paired: what changed between the times", w.Count)
		}
		return "The " + how + " of measurement is part of every difference"
	},
	compare.ToolsDiffer:     differIn("the tool"),
	compare.VersionsDiffer:  differIn("the version of knotmeter"),
	compare.DurationsDiffer: differIn("the seconds of a run"),
	compare.WarmupsDiffer:   differIn("the seconds of warm-up"),
	compare.AlphasDiffer:    differIn("alpha, of which the smallest counts"),
	compare.DeltasDiffer:    differIn("delta, of which the smallest counts"),
	compare.DefinitionsDiffer: func(w compare.Warning) string {
		return "The experiments differ in the definition of " + w.Cases[0]
	},
	compare.SameID: func(w compare.Warning) string {
		return fmt.Sprintf("%s have the same id, %s; they may be the same data", experiments(w.Experiments), w.ID)
	},
	compare.OtherTool: func(w compare.Warning) string {
		verb := map[bool]string{true: "is", false: "are"}[len(w.Experiments) == 1]
		return fmt.Sprintf("%s %s numbers of another tool (%s), which may mean something else by the same names",
			experiments(w.Experiments), verb, w.Tool)
	},
	compare.OnlyInOne: func(w compare.Warning) string {
		return fmt.Sprintf("Cases that only experiment %s has, compared with nothing: %s",
			w.Experiments[0], prose.Some(w.Cases))
	},
	compare.MissingInFirst: func(w compare.Warning) string {
		return fmt.Sprintf("Cases that experiment %s does not have, so that others are compared with nothing: %s",
			w.Experiments[0], prose.Some(w.Cases))
	},
	compare.NoNamesake: func(w compare.Warning) string {
		return "Targets without a namesake in another experiment, compared with nothing: " + prose.Some(w.Targets)
	},
	compare.MetricChosen: func(w compare.Warning) string {
		return fmt.Sprintf("Verdicts on %s are about %s, which was chosen afterwards, instead of %s as planned; %s",
			unit.Plural(w.Count, "case"), w.Metrics[0], prose.Some(w.Metrics[1:]), errorProbability)
	},
	compare.AllPairsChosen: always("Comparing all pairs was chosen after the runs; " + errorProbability),
	compare.GatesChosen:    always("These gates were chosen after the runs; " + errorProbability),
	compare.DocumentIsAbridged: func(w compare.Warning) string {
		return fmt.Sprintf("This copy has at most the first %d rows of each list: %d of %d rows", w.Needed, w.Count, w.Of)
	},
}

// always returns a renderer of a warning without arguments.
func always(text string) func(compare.Warning) string {
	return func(compare.Warning) string { return text }
}

// differIn returns a renderer of a property in which experiments differ.
func differIn(property string) func(compare.Warning) string {
	return func(w compare.Warning) string {
		var values []string
		for _, s := range w.Values {
			values = append(values, s.Value+" ("+prose.Enumerate(s.Experiments)+")")
		}
		return fmt.Sprintf("The experiments differ in %s: %s", property, prose.Enumerate(values))
	}
}

// survivorsText explains why invalid runs on one side alone matter.
const survivorsText = "The runs that are left there may be the good ones, and that side may look better than it is"

// recordedWarnings returns sentences for the warnings that experiments recorded about themselves, such as that the
// proxies of a target are a stand-in. Every format has them.
func recordedWarnings(c compare.Comparison) (sentences []string) {
	for _, w := range c.Warnings {
		if w.Code == compare.ExperimentWarns {
			sentences = append(sentences, warningSentence(w))
		}
	}
	return sentences
}

// countsText returns counts by target, with the noun once: "1 of 8 runs on a and 2 of 8 on b".
func countsText(counts []compare.TargetCount, noun string) string {
	var parts []string
	for i, c := range counts {
		of := strconv.Itoa(c.Of)
		if i == 0 {
			of = unit.Plural(c.Of, noun)
		}
		parts = append(parts, fmt.Sprintf("%d of %s on %s", c.Count, of, c.Target))
	}
	return prose.Enumerate(parts)
}

// recordedText returns the text of a recorded warning after who has it, such as "All runs: …".
func recordedText(who string, w compare.Warning) string {
	if w.Varies {
		who += ", for example"
	}
	return who + ": " + w.Recorded.Text
}

func orderText(w compare.Warning) string {
	return fmt.Sprintf("The order matters: where %s ran after %s the change is %s, where it ran before it is %s; ",
		w.Targets[0], w.Targets[1], change(w.After), change(w.Before))
}

// experiments names the experiments with the given labels.
func experiments(labels []string) string {
	if len(labels) == 1 {
		return "Experiment " + labels[0]
	}
	return "Experiments " + prose.Enumerate(labels)
}

// budgetText formats a time in seconds, from two minutes on in minutes.
func budgetText(s float64) string {
	if s >= 120 {
		return strconv.FormatFloat(math.Round(s/6)/10, 'f', -1, 64) + " min"
	}
	return strconv.FormatFloat(s, 'g', 3, 64) + " s"
}
