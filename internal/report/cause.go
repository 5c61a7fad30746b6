package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/text"
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// explained returns the explanations of comparisons of a role.
func explained(in Input, role result.Role) []explain.Explanation {
	cases := in.casesByName()
	return slices.DeleteFunc(slices.Clone(in.Causes), func(x explain.Explanation) bool {
		return cases[x.Case].Role != role
	})
}

// why returns the explanations of differences: first supported causes of differences from the baseline in primary
// cases.
func why(in Input) doc.Block {
	b := doc.Block{ID: "why", Title: "Why", Level: doc.Detail,
		About: "What else differs between the two targets in the blocks of a verdict, in the direction that harms. Shares " +
			"are of the difference, with their interval at 95 %; they need not add up, since causes overlap."}
	var others doc.Block
	add := func(b *doc.Block, x explain.Explanation) {
		subject, quantity := subjectAndQuantity(in.casesByName()[x.Case], x.Metric)
		short := prose.Unprefixed([]string{x.Target, x.Baseline})
		title := fmt.Sprintf("%s · %s: %s and %s", subject, quantity, short[x.Target], short[x.Baseline])
		b.Parts = append(b.Parts, explanation(title, x, true))
	}
	for _, x := range explained(in, result.Primary) {
		baseline := in.Comparison.Baseline
		if len(x.Supported()) > 0 && (baseline == "" || x.Baseline == baseline || len(in.Experiment.Targets) == 1) {
			add(&b, x)
		} else {
			add(&others, x)
		}
	}
	others.Level, others.Count = doc.Detail, unit.Plural(len(others.Parts), "other difference")
	exploratory := doc.Block{Level: doc.Data, Title: "Differences in exploratory cases"}
	for _, x := range explained(in, result.Exploratory) {
		add(&exploratory, x)
	}
	for _, more := range present(others, exploratory) {
		b.Parts = append(b.Parts, more)
	}
	return b
}

// explanation returns what is known of the causes of a difference. With all, it has the evidence about candidates
// without support.
func explanation(title string, x explain.Explanation, all bool) doc.Block {
	var known doc.Entries
	for _, c := range x.Supported() {
		label := string(c.State) + ": " + c.Cause
		if text := shareText(c.Share); text != "" {
			label += ", " + text
		}
		e := doc.Entry{Label: label, Details: slices.Clone(c.Evidence)}
		if c.Remedy != "" {
			e.Details = append(e.Details, "remedy: "+c.Remedy)
		}
		known = append(known, e)
	}
	for _, c := range x.Confirmations {
		known = append(known, doc.Entry{Label: "trial", Text: c.Sentence})
	}
	for _, c := range x.Differing() {
		known = append(known, doc.Entry{Label: string(c.State) + ": " + c.Cause, Details: slices.Concat(c.Evidence,
			nonEmpty(testText(c)))})
	}
	b := doc.Block{Title: title, Level: doc.Detail, Parts: []doc.Element{doc.Paragraph{Text: x.Sentence}}}
	if len(known) > 0 {
		b.Parts = append(b.Parts, doc.Block{Level: doc.Data, Parts: []doc.Element{known}})
	}
	if others := unsupported(x, all); len(others) > 0 {
		candidates := len(x.Causes) - len(x.Supported()) - len(x.Differing())
		b.Parts = append(b.Parts, doc.Block{Level: doc.Data, Parts: []doc.Element{others},
			Title: unit.Plural(candidates, "candidate") + " without support"})
	}
	return b
}

// unsupported returns the candidates without support, by state: each with its evidence, or their names alone.
func unsupported(x explain.Explanation, all bool) (list doc.Entries) {
	for _, state := range []explain.State{explain.NotObservable, explain.Contradicted} {
		var named []string
		for _, c := range x.Causes {
			switch {
			case c.State != state:
			case all:
				list = append(list, doc.Entry{Label: string(state) + ": " + c.Cause, Text: strings.Join(c.Evidence, "; ")})
			default:
				named = append(named, c.Cause)
			}
		}
		if len(named) > 0 {
			list = append(list, doc.Entry{Label: string(state), Text: strings.Join(named, "; ")})
		}
	}
	return list
}

// CausesText writes explanations for a terminal. With verbose it includes the evidence about candidates without
// support. The error is the writer's.
func CausesText(w io.Writer, list []explain.Explanation, verbose bool) error {
	t := text.NewTerminal(0)
	t.Level = doc.Data
	var b doc.Block
	if len(list) == 0 {
		b.Parts = append(b.Parts,
			doc.Paragraph{Text: "There is nothing to explain: no comparison by blocks came out different."})
	}
	for _, x := range list {
		b.Parts = append(b.Parts, explanation(x.Case+", "+x.Metric+": "+x.Target+" against "+x.Baseline, x, verbose))
	}
	t.Block(b)
	return write(w, strings.TrimLeft(t.String(), "\n"))
}

// testText returns how to find out the effect of a setting that differs; empty if no trial can.
func testText(c explain.Cause) string {
	if c.Factor == nil {
		return ""
	}
	return "'knotmeter explain DIR --confirm' measures it (" + c.Factor.Name + ")"
}

// shareText returns the share of a difference that a cause accounts for, with its interval; empty if it was not
// measured.
func shareText(s *explain.Share) string {
	if s == nil {
		return ""
	}
	return unit.Format(float64(s.Estimate), unit.Ratio) + " [" + unit.Format(s.CI.Lo, unit.Ratio) + ", " +
		unit.Format(s.CI.Hi, unit.Ratio) + "] of the difference"
}

// maxCauses is the number of targets up to which the first screen names causes.
const maxCauses = 3

// causesSentence names the supported causes of the worse one of each target and the baseline, or counts them if there
// are many targets. It is empty if there is nothing to explain, or only one target and no supported cause.
func causesSentence(in Input) string {
	var sides []sideCauses
	all := explained(in, result.Primary)
	found := 0
	for _, w := range all {
		if len(w.Supported()) > 0 {
			found++
		}
		if w.Baseline == in.Comparison.Baseline {
			sides = addCauses(sides, w)
		}
	}
	switch {
	case len(all) == 0, found == 0 && len(in.Experiment.Targets) == 1:
		return ""
	case found == 0:
		return unexplained(all)
	case len(sides) == 0 || len(sides) > maxCauses:
		return fmt.Sprintf("Why: for %d of %s a cause is supported.", found, unit.Plural(len(all), "difference"))
	}
	names := []string{in.Comparison.Baseline}
	for _, s := range sides {
		names = append(names, s.worse, s.better)
	}
	short := prose.Unprefixed(distinct(names))
	var parts []string
	for _, s := range sides {
		text := short[s.worse]
		if s.worse == in.Comparison.Baseline {
			text += ", compared with " + short[s.better] + ","
		}
		parts = append(parts, text+" has "+prose.Enumerate(s.causes))
	}
	return "Why: " + strings.Join(parts, "; ") + "."
}

// A sideCauses holds the supported causes that make one target worse than another.
type sideCauses struct {
	worse, better string
	causes        []string
}

// addCauses adds the supported causes of an explanation to those of the same two targets.
func addCauses(sides []sideCauses, x explain.Explanation) []sideCauses {
	i := slices.IndexFunc(sides, func(s sideCauses) bool { return s.worse == x.Worse && s.better == x.Better })
	for _, c := range x.Supported() {
		if i < 0 {
			i, sides = len(sides), append(sides, sideCauses{worse: x.Worse, better: x.Better})
		}
		if !slices.Contains(sides[i].causes, c.Cause) {
			sides[i].causes = append(sides[i].causes, c.Cause)
		}
	}
	return sides
}

// unexplained returns the sentence about differences without a supported cause: what differs without a shown effect,
// and what would show more.
func unexplained(all []explain.Explanation) string {
	text := fmt.Sprintf("Why: no cause is supported for %s.", unit.Plural(len(all), "difference"))
	var differing []string
	hint := ""
	for _, w := range all {
		for _, c := range w.Differing() {
			differing = append(differing, c.Cause)
		}
		hint = cmp.Or(hint, w.Hint)
	}
	if len(differing) > 0 {
		text += " Settings that differ, without a shown effect: " + strings.Join(distinct(differing), ", ") + "."
	}
	return strings.TrimSpace(text + " " + hint)
}
