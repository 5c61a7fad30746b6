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
	h := newAnswer(in, all, nil)
	blocks := slices.Concat([]doc.Block{gates(in.Comparison)}, h.blocks(in, all), conclusionSections(in),
		[]doc.Block{h.outlook(in)}, sections(in), caveats(in, shown(all), maxNotes), []doc.Block{audited(in.Comparison)})
	slices.SortStableFunc(blocks, func(a, b doc.Block) int { return cmp.Compare(a.Level, b.Level) })
	return present(blocks...)
}

// notices returns what a reader must know of the design and of its conditions before any number.
func notices(in Input) doc.Block {
	var b doc.Block
	texts := sessionChanges(in.Comparison)
	if !in.Comparison.Paired {
		texts = append([]string{unpairedText}, texts...)
	}
	for _, text := range texts {
		b.Parts = append(b.Parts, doc.Paragraph{Text: text, Tone: doc.Warning})
	}
	return b
}

// outlook returns what it would take to decide more, and what is known of causes.
func (h answer) outlook(in Input) doc.Block {
	b := doc.Block{Parts: faint(blocksNeededText(h))}
	if text := causesSentence(in); text != "" {
		b.Parts = append(b.Parts, doc.Paragraph{Text: text, Tone: doc.Faint,
			Link: doc.Hyperlink{ID: "why", Label: "See why."}})
	}
	return b
}

// sections returns the sections of a report that have something to tell, in its order.
func sections(in Input) []doc.Block {
	return present(limits(in), prices(in), leaks(in), objectives(in), publishedFigures(in))
}

// gates returns the outcome of each gate. It comes first, because gates determine the exit status.
func gates(c compare.Comparison) doc.Block {
	var list doc.Entries
	for _, g := range c.Gates {
		e := doc.Entry{Mark: doc.Undecided, Label: string(g.Outcome), Text: fmt.Sprintf("%s (%s)", g.Sentence, g.Gate)}
		switch g.Outcome {
		case compare.Passed:
			e.Mark = doc.Passed
		case compare.Failed:
			e.Mark = doc.Failed
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return doc.Block{}
	}
	return doc.Block{Title: "Gates", Parts: []doc.Element{list}}
}

// conclusionSections returns the sections between the results and sections; a page draws them.
func conclusionSections(in Input) []doc.Block {
	c := in.Comparison
	exploratory := conclusions(c.Groups, false)
	return present(
		list("Order", conclusions(c.Groups, true), "the order of all targets"),
		list("Order in exploratory rows", exploratory, "the order in "+counted(exploratory, "exploratory row")),
		list("By group of cases", subjectSentences(c), ""),
		scale(c, figureNames{}), why(in),
	)
}

// shown returns the groups that tables show.
func shown(all []group) []group {
	primary, _ := partition(all, result.Primary)
	exploratory, _ := partition(all, result.Exploratory)
	return slices.Concat(primary, exploratory)
}

// caveats returns the sections below the results with what a reader has to know about them, with at most so many notes
// on single comparisons; a page has them as chips.
func caveats(in Input, noted []group, most int) []doc.Block {
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
		acute.Parts = append(acute.Parts, doc.Paragraph{Text: worst, Tone: doc.Warning,
			Link: doc.Hyperlink{ID: "audit", Label: "See the audit."}})
	}
	notes, allNotes := rowNotes(noted, most)
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
