package table

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/result"
)

// console reads what iperf3 and netperf printed into the block of code that begins here, and returns how many lines
// of it that makes; 0 if there is nothing of theirs.
func (r *reader) console() int {
	end := r.at + 1
	for end < len(r.lines) && !isFence(r.line(end)) {
		end++
	}
	block := make([]string, 0, end-r.at)
	for i := r.at + 1; i < end; i++ {
		block = append(block, r.line(i))
	}
	found, errs := importer.Console(r.name, block, r.at+2)
	for _, err := range errs {
		r.doc.Warnings = append(r.doc.Warnings, err.Error())
	}
	if len(found) == 0 {
		return 0
	}
	r.doc.Tables++
	if r.cells += len(found); r.cells > maxCells {
		r.over = r.at + 1
		return len(block)
	}
	for _, p := range found {
		r.outputs = append(r.outputs, output{p, r.above})
	}
	return len(block)
}

// An output is a test of a block, and the headings that it is below.
type output struct {
	importer.Printed
	above []string
}

// addOutputs adds a run of each test. It is of the target of a table that a heading above it names, the nearest first.
// Other tests are of what the first heading is about, unless a test was done again below another heading of some
// level: then they are of what these headings are about.
func (r *reader) addOutputs() {
	targets := r.doc.Experiment.Targets[:len(r.doc.Experiment.Targets):len(r.doc.Experiment.Targets)]
	named := func(o output) string {
		for _, heading := range slices.Backward(o.above) {
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
	level := repeatedAt(others)
	for _, o := range r.outputs {
		r.printed(o.Printed, cmp.Or(named(o), o.heading(level), r.subject, result.Unknown))
	}
}

// repetition is a heading of one of several runs of the same.
var repetition = regexp.MustCompile(`(?i)^(?:run|test run|repetition|iteration|round|attempt)\b`)

// heading is the one of a level; "" if there is none, or it counts runs.
func (o output) heading(level int) string {
	if level < 1 || level > len(o.above) || repetition.MatchString(o.above[level-1]) {
		return ""
	}
	return o.above[level-1]
}

// repeatedAt is the level, from 1, of the first headings below which the same test was done more than once; 0 if none
// was.
func repeatedAt(outputs []output) int {
	for level := 1; level <= 6; level++ {
		below := map[string]string{}
		for _, o := range outputs {
			if first, seen := below[o.Workload]; seen && first != o.heading(level) {
				return level
			}
			below[o.Workload] = o.heading(level)
		}
	}
	return 0
}

// printed adds a test that was done on a target.
func (r *reader) printed(p importer.Printed, target string) {
	facts := known(audit.FactPlace, r.place(p.Line), audit.FactTable, audit.TableOutput,
		audit.FactRow, short(r.line(p.Line-1)), audit.FactTool, p.Tool, audit.FactRuns, "1")
	r.add(result.Run{Case: cmp.Or(p.Workload, result.Unknown), Target: target, Tool: p.Tool, Window: p.Window,
		Values: p.Values, Facts: slices.Concat(facts, p.Facts), Warnings: p.Warnings, Invalid: p.Invalid})
}

func isFence(line string) bool {
	text := strings.TrimSpace(line)
	return strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")
}
