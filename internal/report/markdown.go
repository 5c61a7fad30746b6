package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc/markdown"
)

// writeMarkdown writes tables of cases and targets in GitHub's dialect, for a pull request: first what a reader must
// know, everything else folded. Lines that do not fit into a comment are left out and counted at the end.
func writeMarkdown(w io.Writer, in Input) error {
	c := in.Comparison
	var m markdown.Comment
	m.Line("## " + markdown.Escape(c.Headline))
	m.Line(markdown.Escape(title(c) + ": " + c.Summary))
	m.Block(notices(in))
	for _, b := range document(in, groups(in)) {
		m.Block(b)
	}
	about := method(in)
	about.Parts = append(about.Parts, timeSpent(in))
	m.Block(about)
	return write(w, m.String())
}

// rowNotes returns at most most notes of the rows of groups, each text once with the rows that it is about, and the
// number of all.
func rowNotes(list []group, most int) (texts []string, all int) {
	where := map[string][]string{}
	for _, g := range list {
		for _, r := range g.Rows {
			for _, n := range notes(r) {
				where[n] = append(where[n], fmt.Sprintf("%s %s, %s", r.Case, r.Metric, r.Target))
			}
		}
	}
	texts, omitted := chooseNotes(list, most)
	for i, n := range texts {
		texts[i] = listPlaces(where[n]) + ": " + n
	}
	all = len(texts) + omitted
	if omitted > 0 {
		texts = append(texts, fmt.Sprintf("%d more notes on single comparisons are in the report and its JSON.", omitted))
	}
	return texts, all
}

// listPlaces joins up to three places; of more it names two and counts the rest.
func listPlaces(list []string) string {
	if len(list) <= 3 {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:2], "; "), len(list)-2)
}
