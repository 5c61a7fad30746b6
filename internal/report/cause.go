package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// A why is an explanation in the words of a page.
type why struct {
	Title    string // what is explained
	Target   string
	Baseline string
	Sentence string
	Causes   []explain.Cause // supported ones
	Others   []explain.Cause
	Trials   []explain.Confirmation
}

// whys are the explanations of comparisons of a role.
func whys(in Input, role result.Role) []why {
	cases := in.casesByName()
	var list []why
	for _, x := range in.Causes {
		of := cases[x.Case]
		if of.Role != role {
			continue
		}
		subject, quantity := inPlainWords(of, x.Metric)
		supported := x.Supported()
		list = append(list, why{Title: subject + " · " + quantity + ": " + x.Target + " and " + x.Baseline,
			Target: x.Target, Baseline: x.Baseline, Sentence: x.Sentence, Causes: supported, Others: x.Causes[len(supported):],
			Trials: x.Confirmations})
	}
	return list
}

// newWhys are the explanations of a page, and what it says of those that it does not have. Those of primary cases
// against the baseline are what a reader looks for.
func newWhys(in Input) (list folded[why], others string) {
	primary, exploratory := first(whys(in, result.Primary)), first(whys(in, result.Exploratory))
	for _, w := range primary.Rows {
		if baseline := in.Comparison.Baseline; baseline == "" || w.Baseline == baseline || len(in.Experiment.Targets) == 1 {
			list.Shown = append(list.Shown, w)
		} else {
			list.Folded = append(list.Folded, w)
		}
	}
	list.Folded = append(list.Folded, exploratory.Rows...)
	return list, rest(len(list.Shown)+len(list.Folded), primary.All+exploratory.All)
}

// shareText says how much of a difference a cause accounts for; empty where that was not measured.
func shareText(s *explain.Share) string {
	if s == nil {
		return ""
	}
	return unit.Format(float64(s.Estimate), unit.Ratio) + " [" + unit.Format(s.CI.Lo, unit.Ratio) + ", " +
		unit.Format(s.CI.Hi, unit.Ratio) + "] of the difference"
}

// whyWords says what explanations are.
const whyWords = "what else differs in the blocks of a verdict, in the direction that harms."

// mostCauses are as many targets as have their causes named on the first screen.
const mostCauses = 3

// causesSentence names what the evidence supports of each target against the baseline, or counts where there are many
// targets; nothing where one target stands by itself and no cause was found.
func causesSentence(in Input) string {
	found, all := 0, 0
	var targets []string
	named := map[string][]string{}
	for _, w := range whys(in, result.Primary) {
		all++
		if len(w.Causes) > 0 {
			found++
		}
		for _, c := range w.Causes {
			if w.Baseline == in.Comparison.Baseline {
				targets = append(targets, w.Target)
				named[w.Target] = append(named[w.Target], c.Cause)
			}
		}
	}
	targets = distinct(targets)
	switch {
	case all == 0, found == 0 && len(in.Experiment.Targets) == 1:
		return ""
	case found == 0:
		return fmt.Sprintf("Why: no cause is supported for %s.", unit.Plural(all, "difference"))
	case len(targets) == 0 || len(targets) > mostCauses:
		return fmt.Sprintf("Why: for %d of %s a cause is supported.", found, unit.Plural(all, "difference"))
	}
	short := prose.Unprefixed(append([]string{in.Comparison.Baseline}, targets...))
	var parts []string
	for _, name := range targets {
		parts = append(parts, short[name]+" has "+prose.Enumerate(distinct(named[name])))
	}
	return "Why: " + strings.Join(parts, "; ") + "."
}

// causeLines are the explanations of primary comparisons, a line each.
func causeLines(in Input) []string {
	var list []string
	for _, w := range whys(in, result.Primary) {
		list = append(list, w.Title+": "+w.Sentence)
	}
	return list
}

// CausesText writes explanations for a terminal. The evidence about candidates without support is for verbose ones.
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
			p.Paragraph("  ", "      ", "confirmed by a trial: "+c.Sentence)
		}
		writeOthers(&p, x.Causes[len(supported):], verbose)
	}
	return write(w, p.String())
}

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

// writeOthers writes candidates without support, those of one state together.
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
