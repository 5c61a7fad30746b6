package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc/html"
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// An explanation is an explanation of a difference, worded for a page.
type explanation struct {
	Title         string // case, quantity and the two targets
	Target        string
	Baseline      string
	Sentence      string
	Worse, Better string          // of the two, whichever is the baseline
	Causes        []explain.Cause // with support
	Differing     []explain.Cause // without a shown effect
	Others        []explain.Cause
	Hint          string // about what would show more
	Confirmations []explain.Confirmation
}

// explanations returns the explanations of comparisons of a role.
func explanations(in Input, role result.Role) []explanation {
	cases := in.casesByName()
	var list []explanation
	for _, x := range in.Causes {
		planned := cases[x.Case]
		if planned.Role != role {
			continue
		}
		subject, quantity := subjectAndQuantity(planned, x.Metric)
		supported, differing := x.Supported(), x.Differing()
		short := prose.Unprefixed([]string{x.Target, x.Baseline})
		list = append(list, explanation{
			Title:  fmt.Sprintf("%s · %s: %s and %s", subject, quantity, short[x.Target], short[x.Baseline]),
			Target: x.Target, Baseline: x.Baseline, Worse: x.Worse, Better: x.Better, Sentence: x.Sentence, Hint: x.Hint,
			Causes: supported, Differing: differing, Others: x.Causes[len(supported)+len(differing):],
			Confirmations: x.Confirmations,
		})
	}
	return list
}

// newExplanations returns the explanations of a page, and a note about those that are left out. Supported causes of
// differences from the baseline in primary cases come first, the others are folded.
func newExplanations(in Input) (list folded[explanation], others string) {
	primary, exploratory := firstRows(explanations(in, result.Primary)), firstRows(explanations(in, result.Exploratory))
	for _, w := range primary.Rows {
		baseline := in.Comparison.Baseline
		if len(w.Causes) > 0 && (baseline == "" || w.Baseline == baseline || len(in.Experiment.Targets) == 1) {
			list.Shown = append(list.Shown, w)
		} else {
			list.Folded = append(list.Folded, w)
		}
	}
	list.Folded = append(list.Folded, exploratory.Rows...)
	return list, html.Rest(len(list.Shown)+len(list.Folded), primary.All+exploratory.All)
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
	all := explanations(in, result.Primary)
	found := 0
	for _, w := range all {
		if len(w.Causes) > 0 {
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
func addCauses(sides []sideCauses, w explanation) []sideCauses {
	i := slices.IndexFunc(sides, func(s sideCauses) bool { return s.worse == w.Worse && s.better == w.Better })
	for _, c := range w.Causes {
		if i < 0 {
			i, sides = len(sides), append(sides, sideCauses{worse: w.Worse, better: w.Better})
		}
		if !slices.Contains(sides[i].causes, c.Cause) {
			sides[i].causes = append(sides[i].causes, c.Cause)
		}
	}
	return sides
}

// unexplained returns the sentence about differences without a supported cause: what differs without a shown effect,
// and what would show more.
func unexplained(all []explanation) string {
	text := fmt.Sprintf("Why: no cause is supported for %s.", unit.Plural(len(all), "difference"))
	var differing []string
	hint := ""
	for _, w := range all {
		for _, c := range w.Differing {
			differing = append(differing, c.Cause)
		}
		hint = cmp.Or(hint, w.Hint)
	}
	if len(differing) > 0 {
		text += " Settings that differ, without a shown effect: " + strings.Join(distinct(differing), ", ") + "."
	}
	return strings.TrimSpace(text + " " + hint)
}

// causeLines returns the explanations of primary comparisons, a line each.
func causeLines(in Input) []string {
	var list []string
	for _, w := range explanations(in, result.Primary) {
		list = append(list, w.Title+": "+w.Sentence)
	}
	return list
}

// CausesText writes explanations for a terminal. With verbose it includes the evidence about candidates without
// support. The error is the writer's.
func CausesText(w io.Writer, list []explain.Explanation, verbose bool) error {
	var p prose.Page
	if len(list) == 0 {
		p.Paragraph("", "", "There is nothing to explain: no comparison by blocks came out different.")
	}
	for i, x := range list {
		if i > 0 {
			p.Line("")
		}
		p.Paragraph("", "  ", x.Case+", "+x.Metric+": "+x.Target+" against "+x.Baseline)
		p.Paragraph("  ", "  ", x.Sentence)
		supported := x.Supported()
		for _, c := range supported {
			writeSupported(&p, c)
		}
		for _, c := range x.Confirmations {
			p.Paragraph("  ", "      ", "trial: "+c.Sentence)
		}
		differing := x.Differing()
		for _, c := range differing {
			p.Paragraph("  ", "      ", string(c.State)+": "+c.Cause+": "+strings.Join(c.Evidence, "; ")+testText(c))
		}
		writeOthers(&p, x.Causes[len(supported)+len(differing):], verbose)
	}
	return write(w, p.String())
}

// testText returns how to find out the effect of a setting that differs; empty if no trial can.
func testText(c explain.Cause) string {
	if c.Factor == nil {
		return ""
	}
	return "; 'knotmeter explain DIR --confirm' measures it (" + c.Factor.Name + ")"
}

// writeSupported writes a supported cause with its evidence and remedy.
func writeSupported(p *prose.Page, c explain.Cause) {
	head := string(c.State) + ": " + c.Cause
	if text := shareText(c.Share); text != "" {
		head += ", " + text
	}
	p.Paragraph("  ", "      ", head)
	for _, e := range c.Evidence {
		p.Paragraph("      ", "        ", e)
	}
	if c.Remedy != "" {
		p.Paragraph("      ", "        ", "remedy: "+c.Remedy)
	}
}

// writeOthers writes the candidates without support, grouped by state.
func writeOthers(p *prose.Page, list []explain.Cause, verbose bool) {
	for _, state := range []explain.State{explain.NotObservable, explain.Contradicted} {
		var named []string
		for _, c := range list {
			switch {
			case c.State != state:
			case verbose:
				p.Paragraph("  ", "      ", string(state)+": "+c.Cause+": "+strings.Join(c.Evidence, "; "))
			default:
				named = append(named, c.Cause)
			}
		}
		if len(named) > 0 {
			p.Paragraph("  ", "      ", string(state)+": "+strings.Join(named, "; "))
		}
	}
}
