package report

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

// TestUndecidedSaysWhy checks that each row that is undecided although its interval excludes zero has the reason next
// to it in all formats with verdicts, also if there are more notes than fit, and that other undecided rows have none.
func TestUndecidedSaysWhy(t *testing.T) {
	few := compare.Warning{Code: compare.FewRuns, Count: 5, Of: 5, Needed: 6}
	many := compare.Warning{Code: compare.OneOfMany, Verdict: compare.Different, Count: 36}
	rows := []compare.Row{
		row("b", 9, 7, -0.286, -0.424, -0.099, compare.Undecided, compare.None),
		row("c", 9, 9, -0.01, -0.1, 0.1, compare.Undecided, compare.None),
		exploratory(latency(row("b", 0, 0, 0.286, 0.1, 0.424, compare.Undecided, compare.None), 20, 26)),
	}
	rows[0].Warnings, rows[1].Warnings = []compare.Warning{few}, []compare.Warning{few}
	rows[2].Warnings = []compare.Warning{many}
	for i := range 2 * maxNotes { // rows whose notes concern more rows each, and so are shown first
		for _, target := range []string{"b", "c"} {
			r := row(target, 9, 7, 0.1, 0.05, 0.15, compare.Different, compare.BetterThan)
			r.Metric = fmt.Sprint("m", i)
			rows = append(rows, exploratory(warned(r, fmt.Sprintf("Note %d.", i))))
		}
	}
	in := input(rows...)
	formats := map[string]string{
		"brief": render(t, func(b *strings.Builder) error { return Text(b, in, TextOptions{}) }),
	}
	for _, f := range []string{"table", "markdown", "html", "junit"} {
		formats[f] = inFormat(t, f, in)
	}
	files, err := svgFiles(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name, "forest") || f.Name == "answer.svg" {
			formats[f.Name] = f.Text
		}
	}
	for name, text := range formats {
		text, _, _ = strings.Cut(text, `id="comparison"`) // its JSON
		text = spaceless(html.UnescapeString(text))
		planned := name != "forest-exploratory.svg"
		other := slices.Contains([]string{"table", "markdown", "html", "forest-exploratory.svg"}, name)
		if planned != strings.Contains(text, "fewerthan6runsonaside") ||
			other != strings.Contains(text, "tooweakamong36exploratorycomparisons") {
			t.Errorf("%s does not say why rows are undecided:\n%s", name, text)
		}
	}
	drifts := rows[0]
	drifts.Warnings = []compare.Warning{{Code: compare.Drift}}
	got := inFormat(t, "markdown", input(drifts))
	if !strings.Contains(got, "undecided: the runs rise or fall from run to run") {
		t.Errorf("a row is undecided by drift, and does not say so:\n%s", got)
	}
	if n := strings.Count(formats["table"], "fewer than 6 runs"); n != 1 {
		t.Errorf("%d rows have the reason of one:\n%s", n, formats["table"])
	}
}
