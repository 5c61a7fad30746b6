package report

import (
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// sections returns the sections of a report that have something to tell, in its order.
func sections(in Input) []doc.Block {
	var list []doc.Block
	for _, section := range []func(Input) doc.Block{limits, prices, leaks, objectives, published} {
		if b := section(in); len(b.Parts) > 0 {
			list = append(list, b)
		}
	}
	return list
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
