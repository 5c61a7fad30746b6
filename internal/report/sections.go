package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// document returns a report for media that do not draw: what belongs to the answer first, then the details.
func document(in Input, all []group) []doc.Block {
	h := newAnswer(in, all, nil, nil)
	blocks := slices.Concat([]doc.Block{gates(in.Comparison)}, h.blocks(in, all), conclusionSections(in),
		[]doc.Block{{Parts: faint(blocksNeededText(h), causesSentence(in))}}, sections(in), caveats(in, all))
	slices.SortStableFunc(blocks, func(a, b doc.Block) int { return cmp.Compare(a.Level, b.Level) })
	return present(blocks...)
}

// sections returns the sections of a report that have something to tell, in its order.
func sections(in Input) []doc.Block {
	return present(limits(in), prices(in), leaks(in), objectives(in), publishedFigures(in))
}

// gates returns the outcome of each gate. It comes first, because gates determine the exit status.
func gates(c compare.Comparison) doc.Block {
	var outcomes []string
	for _, g := range c.Gates {
		outcomes = append(outcomes, fmt.Sprintf("%s: %s (%s)", g.Outcome, g.Sentence, g.Gate))
	}
	b := list("Gates", outcomes, "")
	b.Level = doc.Answer
	return b
}

// conclusionSections returns the sections between the results and sections; a page draws them.
func conclusionSections(in Input) []doc.Block {
	c := in.Comparison
	scale := list("Scale", slopeSentences(c, result.Primary), "")
	scale.Level, scale.About = doc.Answer, slopesText
	if rest := slopeSentences(c, result.Exploratory); len(rest) > 0 {
		scale.Parts = append(scale.Parts, doc.Block{Title: "Exploratory", Level: doc.Detail,
			Parts: []doc.Element{doc.Items(rest)}})
	}
	exploratory := conclusions(c.Groups, false)
	why := list("Why", causeLines(in), "")
	why.About = "What else differs between the two targets in the blocks of a verdict, in the direction that harms."
	return present(
		list("Order", conclusions(c.Groups, true), "the order of all targets"),
		list("Order in exploratory rows", exploratory, "the order in "+counted(exploratory, "exploratory row")),
		list("By group of cases", subjectSentences(c), ""),
		scale, why,
	)
}

// caveats returns the sections below the results with what a reader has to know about them; a page has them as chips.
func caveats(in Input, all []group) []doc.Block {
	c := in.Comparison
	var acute doc.Block
	var standing []string
	for _, w := range c.Warnings {
		if w.Standing() {
			standing = append(standing, warningSentence(w))
		} else {
			acute.Parts = append(acute.Parts, doc.Paragraph{Text: warningSentence(w), Tone: doc.Warning})
		}
	}
	const maxTargets = 3 // without any run that have a warning each
	missing, rest := 0, []result.NotMeasured{}
	for _, n := range c.NotMeasured {
		if n.EveryCase() && !n.EveryTarget() && missing < maxTargets {
			missing++
			text := fmt.Sprintf("%s was not measured: %s.", n.Target, n.Reason)
			acute.Parts = append(acute.Parts, doc.Paragraph{Text: text, Tone: doc.Warning})
		} else {
			rest = append(rest, n)
		}
	}
	if worst := newFindings(c).Worst(); worst != "" {
		acute.Parts = append(acute.Parts, doc.Paragraph{Text: worst})
	}
	primary, _ := partition(all, result.Primary)
	exploratory, _ := partition(all, result.Exploratory)
	notes, allNotes := rowNotes(slices.Concat(primary, exploratory), maxNotes)
	invalid, differ := 0, alsoDiffers(c)
	for _, t := range c.Targets {
		invalid += t.Invalid
	}
	differing := unit.Plural(len(differ), "target") + " that differ in other facts"
	if len(differ) == 1 {
		differing = "1 target that differs in other facts"
	}
	return present(acute,
		list("Notes on single comparisons", notes, unit.Plural(allNotes, "note")),
		list("Standing warnings", standing, counted(standing, "standing warning")),
		list("Implausible", findings(c), counted(c.Findings, "audit finding")),
		list("Not measured", notMeasured(rest), fmt.Sprintf("%d not measured", len(rest))),
		list("Also differs from "+differsFrom(c)+" (its value in brackets)", differ, differing),
		list("Invalid runs, repeated with their block", invalidRuns(c), unit.Plural(invalid, "invalid run")),
	)
}

// present returns the blocks that have parts.
func present(blocks ...doc.Block) []doc.Block {
	var kept []doc.Block
	for _, b := range blocks {
		if len(b.Parts) > 0 {
			kept = append(kept, b)
		}
	}
	return kept
}

// list returns a detail with items; one without parts if there are none.
func list(title string, items []string, count string) doc.Block {
	if len(items) == 0 {
		return doc.Block{}
	}
	return doc.Block{Title: title, Level: doc.Detail, Count: count, Parts: []doc.Element{doc.Items(items)}}
}

// parts returns a table as the body of a section; none if it has no rows.
func parts(t doc.Table) []doc.Element {
	if len(t.Rows) == 0 {
		return nil
	}
	return []doc.Element{t}
}

// counted counts entries for media that leave them out.
func counted[T any](list []T, noun string) string { return unit.Plural(len(list), noun) }
