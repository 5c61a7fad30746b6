package table

import (
	"slices"
	"strings"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/importer"
	"github.com/knotmeter/knotmeter/internal/result"
)

// console reads what iperf3 and netperf printed into the block of code that begins here, and returns how many lines
// of it that makes; 0 if there is nothing of theirs. A test is a run, of what the headings above it are about.
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
		r.printed(p)
	}
	return len(block)
}

// printed adds a test of the block.
func (r *reader) printed(p importer.Printed) {
	target := r.subject
	if target == "" {
		target = result.Unknown
	}
	facts := known(audit.FactPlace, r.place(p.Line), audit.FactTable, "the output of the tools",
		audit.FactRow, short(r.line(p.Line-1)), audit.FactTool, p.Tool, audit.FactRuns, "1")
	name := p.Workload
	if name == "" {
		name = result.Unknown
	}
	r.add(result.Run{Case: name, Target: target, Tool: p.Tool, Window: p.Window, Values: p.Values,
		Facts: slices.Concat(facts, p.Facts), Warnings: p.Warnings, Invalid: p.Invalid})
}

func isFence(line string) bool {
	text := strings.TrimSpace(line)
	return strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~")
}
