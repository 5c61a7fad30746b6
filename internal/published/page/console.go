package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/result"
)

// readConsole reads output of iperf3 and netperf in the block of code that begins at the current line. It returns the
// number of lines of the block; 0 if there is no such output.
func (r *reader) readConsole() int {
	end := r.at + 1
	for end < len(r.lines) && !isFence(r.line(end)) {
		end++
	}
	if !r.readOutputs(r.at+1, end) {
		return 0
	}
	return end - r.at - 1
}

// readOutputs reads output of iperf3 and netperf in lines, from 0, up to another one. It reports whether there is any.
func (r *reader) readOutputs(from, to int) bool {
	block := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		block = append(block, r.line(i))
	}
	found, errs := importer.Console(r.name, block, from+1)
	if len(found) == 0 && !r.inCode {
		return false // errors may be about sentences
	}
	for _, err := range errs {
		r.doc.Warnings = append(r.doc.Warnings, err.Error())
	}
	if len(found) == 0 {
		return false
	}
	r.doc.Tables++
	if r.cells += len(found); r.cells > maxCells {
		r.over = r.number(from)
		return true
	}
	for _, p := range found {
		headings := r.headingsAbove(r.caption)
		headings[allLevels-1] = heading(r.captionBefore(p.Line-1, from-1))
		r.outputs = append(r.outputs, output{p, headings})
	}
	return true
}

// An output is a test in a block of code.
type output struct {
	importer.Printed
	headings []string // above it, by level from 1
}

// addOutputs adds a run for each test. Its target is the one that a heading above it names, the nearest heading first.
// Without such a heading, the target is the heading of the level at which tests repeat, or else the first heading.
func (r *reader) addOutputs() {
	targets := r.doc.Experiment.Targets[:len(r.doc.Experiment.Targets):len(r.doc.Experiment.Targets)]
	named := func(o output) string {
		for _, heading := range slices.Backward(o.headings) {
			for _, t := range targets {
				if alike(heading, t.Name) {
					return t.Name
				}
			}
		}
		return ""
	}
	var others []output
	for _, o := range r.outputs {
		if named(o) == "" {
			others = append(others, o)
		}
	}
	level := repeatedLevel(others)
	for _, o := range r.outputs {
		r.section = sectionOf(o.headings)
		r.addPrinted(o.Printed, cmp.Or(named(o), o.heading(level), r.firstHeading, result.Unknown))
	}
}

// heading returns the heading of a level; empty if there is none, or if it numbers runs.
func (o output) heading(level int) string {
	if level < 1 || level > len(o.headings) || isRepetition(o.headings[level-1]) {
		return ""
	}
	return o.headings[level-1]
}

// repeatedLevel returns the lowest level of headings, from 1, at which the same workload between the same nodes is
// below different headings; 0 if there is none.
func repeatedLevel(outputs []output) int {
	for level := 1; level <= allLevels; level++ {
		below := map[[2]string]string{}
		for _, o := range outputs {
			test := [2]string{o.Workload, o.where()}
			if first, seen := below[test]; seen && first != o.heading(level) {
				return level
			}
			below[test] = o.heading(level)
		}
	}
	return 0
}

// where returns which nodes the nearest heading names that names any: /same, /other, or empty.
func (o output) where() string {
	for _, h := range slices.Backward(o.headings) {
		if where := whereOf(h); where != "" {
			return where
		}
	}
	return ""
}

// addPrinted adds a run of a test on a target.
func (r *reader) addPrinted(p importer.Printed, target string) {
	facts := factsWithValues(audit.FactPlace, r.place(r.number(p.Line-1)), audit.FactTable, audit.TableOutput,
		audit.FactRow, short(r.line(p.Line-1)), audit.FactTool, p.Tool, audit.FactRuns, "1")
	r.add(result.Run{Case: cmp.Or(p.Workload, result.Unknown), Target: target, Tool: p.Tool, Window: p.Window,
		Values: p.Values, Facts: slices.Concat(facts, p.Facts), Warnings: p.Warnings, Invalid: p.Invalid})
}

func isFence(line string) bool {
	text := strings.TrimSpace(line)
	return strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")
}
