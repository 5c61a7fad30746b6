// Package doctest has a document for the tests of renderers.
package doctest

import "github.com/knotmeter/knotmeter/internal/doc"

// Hostile is text that ends or begins something in each medium.
const Hostile = "</td><script>x()</script> | `a` [b](c) @user #1 \x1b[31m <!-- & \"'"

// HostileBlock returns a block with hostile text in every place that has text from outside.
func HostileBlock() doc.Block {
	table := doc.Table{Columns: []doc.Column{{Head: Hostile}, {Head: Hostile, Words: true}}, Rows: []doc.Row{
		{Group: Hostile, Head: Hostile, Sub: Hostile, Cells: []doc.Cell{
			{Text: Hostile, Parts: []string{Hostile, Hostile}, Notes: []string{Hostile}}, {Text: Hostile},
		}}}}
	return doc.Block{ID: "hostile", Title: Hostile, About: Hostile, Parts: []doc.Element{
		doc.Paragraph{Text: Hostile, Link: doc.Hyperlink{ID: "x", Label: Hostile}}, doc.Items{Hostile}, table,
		doc.Entries{{Label: Hostile, Text: Hostile, Details: []string{Hostile}}},
		doc.Choice{ID: "hostile", Label: Hostile, Options: []doc.Option{{Name: Hostile, Table: table}}},
		doc.Figure{Title: Hostile, Note: Hostile, Caption: Hostile, Legend: []doc.Label{{Name: Hostile}},
			Links: []doc.Hyperlink{{ID: Hostile, Sign: Hostile, Label: Hostile}}, Plot: "<svg></svg>",
			Columns: []doc.Label{{Name: Hostile, Note: Hostile}}, Table: table},
		doc.Block{Title: Hostile, Parts: []doc.Element{doc.Paragraph{Text: Hostile}}},
	}}
}

// Block returns a block with every kind of part.
func Block() doc.Block {
	lead := Table()
	lead.Lead, lead.Rows[0].Cells[0].Best = true, true
	return doc.Block{ID: "sample", Title: "Sample", About: "About the sample.", Parts: []doc.Element{
		doc.Paragraph{Text: "A paragraph of -5 % or so."},
		doc.Paragraph{Text: "A warning.", Tone: doc.Warning},
		doc.Paragraph{Text: "Small print.", Tone: doc.Faint},
		doc.Paragraph{Text: "knotmeter run a b", Tone: doc.Code},
		doc.Items{"one", "two"},
		doc.Entries{{ID: "entry", Mark: doc.Passed, Label: "passed", Text: "It holds.", Details: []string{"a detail"}},
			{Label: "unmarked"}},
		Table(),
		doc.Choice{ID: "against", Label: "Changes against", Options: []doc.Option{{Name: "native", Table: lead},
			{Name: "vxlan", Table: lead}}},
		doc.Figure{Name: "sample", Title: "A figure", Caption: "Its caption.", Plot: "<svg></svg>",
			Columns: []doc.Label{{Name: "lab:vxlan", Note: "a note"}}, Table: Table()},
		doc.Figure{Title: "Lines", Note: "in s", Caption: "A sentence that says the same.", Plot: "<svg></svg>",
			Legend: []doc.Label{{Name: "line", Style: 2}, {Name: "bar", Style: 3, Bars: true}}, Data: "[1]"},
		doc.Block{Title: "Inner", Parts: []doc.Element{doc.Paragraph{Text: "Inside."}}},
		doc.Block{Title: "Folded", Level: doc.Data, Parts: []doc.Element{doc.Paragraph{Text: "In a page alone."}}},
	}}
}

// Table returns a table with groups, parts, marks, notes and words.
func Table() doc.Table {
	return doc.Table{
		Columns: []doc.Column{{Head: "native", Note: "baseline"}, {Head: "vxlan"}, {Head: "source", Words: true}},
		Rows: []doc.Row{
			{Group: "Pod to pod", Head: "latency", Sub: "tcp-rr p50", Cells: []doc.Cell{{Text: "30.0 µs"},
				{Text: "36.0 µs", Mark: doc.Worse, Parts: []string{"+20.0 %", "[15.0, 25.0]"}, Notes: []string{"about 4 blocks"},
					Links: []doc.Hyperlink{{ID: "finding-1", Sign: "▲1", Label: "warning 1"}}}, {Text: "measured here"}}},
			{Group: "Pod to pod", Head: "throughput", Cells: []doc.Cell{{Text: "9.10 Gbit/s"},
				{Text: "9.00 Gbit/s", Mark: doc.Undecided, Parts: []string{"-1.1 %", "[-5.0, 3.0]"}},
				{Text: "a source with a name that is longer than any column", Notes: []string{"of 2019"}}}},
		},
	}
}
