package report

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// exampleOf returns a warning with every argument that a code may have.
func exampleOf(code compare.Code) compare.Warning {
	counts := []compare.TargetCount{{Target: "lab:native", Count: 1, Of: 8}, {Target: "lab:vxlan", Count: 3, Of: 8}}
	return compare.Warning{
		Code: code, Cases: []string{stream, rr}, Targets: []string{"lab:vxlan", "lab:native"},
		Metrics: []string{"p99", "p50"}, Units: []unit.Unit{unit.Second, unit.PerSecond},
		Experiments: []string{"first", "second"}, Runs: []string{"r00001", "r00002"}, Rules: []string{"order", "zero"},
		Tool: "csv", Loops: []string{"open", "closed"}, ID: "2026-11-21-test",
		Values: []compare.PropertyValue{
			{Value: "1", Experiments: []string{"first", "second"}}, {Value: "2", Experiments: []string{"third"}},
		},
		Unmatched: []compare.Unmatched{{Case: stream, Metric: "throughput", Unit: unit.BitPerSecond}},
		Counts:    counts, Count: 7, Of: 8, Needed: 9, Block: 5, Attempt: 2, Level: 0.987, Seconds: 600,
		Verdict: compare.Different, Spread: 0.123, Step: 0.05, Delta: 0.02, After: 0.021, Before: -0.013,
		Recorded: &result.Warning{Code: result.SiteNotRemoved, Text: "a pod is left"}, Varies: true,
	}
}

// TestEveryCodeHasASentence checks that the table has the codes of package compare and no others, and that each text
// becomes a sentence with one full stop.
func TestEveryCodeHasASentence(t *testing.T) {
	declared, listed := declaredCodes(t), map[string]bool{}
	for _, n := range nodes[*ast.KeyValueExpr](t, "warning.go") {
		if key, is := n.Key.(*ast.SelectorExpr); is {
			listed[key.Sel.Name] = true
		}
	}
	if len(declared) < 60 || !maps.Equal(declared, listed) || len(listed) != len(warningTexts) {
		t.Errorf("package compare declares %d codes: %q\nthe table has %d: %q", len(declared),
			slices.Sorted(maps.Keys(declared)), len(warningTexts), slices.Sorted(maps.Keys(listed)))
	}
	var text strings.Builder
	for _, code := range slices.Sorted(maps.Keys(warningTexts)) {
		s := warningSentence(exampleOf(code))
		if s == "" || strings.HasSuffix(s, "..") || strings.Contains(s, "%!") || strings.Contains(s, "  ") {
			t.Errorf("%s: %q", code, s)
		}
		text.WriteString(string(code) + ": " + s + "\n")
	}
	golden.Check(t, "testdata/warnings.txt", text.String())
}

// TestEveryCodeIsUsed checks that some part of the program warns of each code.
func TestEveryCodeIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, pattern := range []string{"../compare/*.go", "../stats/*.go", "*.go", "../cli/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := filepath.Base(file); strings.HasSuffix(name, "_test.go") || name == "warning.go" || name == "remark.go" {
				continue // tests, declarations, and the table
			}
			for _, id := range nodes[*ast.Ident](t, file) {
				used[id.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declaredCodes(t))) {
		if !used[name] {
			t.Errorf("nothing warns of %s", name)
		}
	}
}

// declaredCodes returns the names of the constants of type compare.Code.
func declaredCodes(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, spec := range nodes[*ast.ValueSpec](t, "../compare/warning.go") {
		of := spec.Type
		if call, is := spec.Values[0].(*ast.CallExpr); is {
			of = call.Fun
		}
		if id, is := of.(*ast.Ident); is && id.Name == "Code" {
			names[spec.Names[0].Name] = true
		}
	}
	return names
}

// nodes returns the nodes of one type in the syntax tree of a file.
func nodes[T ast.Node](t *testing.T, file string) []T {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []T
	ast.Inspect(tree, func(n ast.Node) bool {
		if x, is := n.(T); is {
			list = append(list, x)
		}
		return true
	})
	return list
}

// TestWarningsOfExperiments checks that a warning names the experiments that it is about, and that a later version's
// warning has its code as its text.
func TestWarningsOfExperiments(t *testing.T) {
	for want, w := range map[string]compare.Warning{
		"Experiment a: a pod is left.":          {In: []string{"a"}, Code: compare.ExperimentWarns, Recorded: left()},
		"All runs, for example: a pod is left.": {Code: compare.RunsWarn, Recorded: left(), Varies: true},
		"one-run-too-few.":                      {Code: "one-run-too-few"},
	} {
		if got := warningSentence(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func left() *result.Warning {
	return &result.Warning{Code: result.SiteNotRemoved, Text: "a pod is left"}
}

// TestDocumentSpeaks checks that warnings have their code, arguments and text in JSON, and that rows have delta.
func TestDocumentSpeaks(t *testing.T) {
	in := input(row("lab:vxlan", 9.13, 6.41, -0.297, -0.33, -0.26, compare.Different, compare.WorseThan))
	few := compare.Warning{Code: compare.FewOfPlanned, Count: 9, Of: 11}
	in.Comparison.Comparisons[0].Warnings = []compare.Warning{few}
	in.Comparison.Warnings = []compare.Warning{{Code: compare.NotPaired, Count: 3}}
	var b strings.Builder
	if err := writeJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	type warning struct {
		Code      string
		Count, Of int
		Text      string
	}
	var d struct {
		Warnings    []warning
		Comparisons []struct {
			Delta    float64
			Warnings []warning
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &d); err != nil {
		t.Fatal(err)
	}
	want := warning{"few-of-planned", 9, 11, "Only 9 of the 11 blocks planned have a valid run on both sides."}
	if len(d.Comparisons) != 1 || d.Comparisons[0].Delta != 0.02 || !slices.Contains(d.Comparisons[0].Warnings, want) {
		t.Errorf("%+v", d.Comparisons)
	}
	if len(d.Warnings) != 1 || d.Warnings[0].Code != "not-paired" || d.Warnings[0].Count != 3 ||
		!strings.HasPrefix(d.Warnings[0].Text, "The 3 experiments are not paired") {
		t.Errorf("%+v", d.Warnings)
	}
	if strings.Count(b.String(), `"warnings"`) != 2 || strings.Count(b.String(), `"comparisons"`) != 1 {
		t.Error(b.String())
	}
}

// TestEveryFormatHasRecordedWarnings checks that a caution about a target, such as that its proxies are a stand-in, is
// in every format.
func TestEveryFormatHasRecordedWarnings(t *testing.T) {
	in := small()
	in.Comparison.Warnings = recorded("lab:vxlan: its proxies are a stand-in.")
	inEveryFormat(t, in, "lab:vxlan: its proxies are a stand-in", map[string]string{
		"openmetrics": `knotmeter_warning{text="lab:vxlan: its proxies are a stand-in."} 1`,
		"csv":         ",lab:vxlan: its proxies are a stand-in.",
		"bench":       "warnings: lab:vxlan: its proxies are a stand-in.",
		"junit":       `<property name="warning" value="lab:vxlan: its proxies are a stand-in."></property>`,
	})
}

// TestCensoredTrialsAreNextToTheirMetric checks that the mark of trials that ended before the change showed stands next
// to the metric that they belong to, and not next to others.
func TestCensoredTrialsAreNextToTheirMetric(t *testing.T) {
	r, err := manyRuns(smallShape("lab:native", "lab:vxlan"))
	if err != nil {
		t.Fatal(err)
	}
	for i, run := range r.Runs {
		if run.Target == "lab:vxlan" && run.Case == rr {
			r.Runs[i].Warnings = []result.Warning{{Code: result.Censored, Metric: "p50",
				Text: "2 of 9 trials ended before the change showed; they count with the 30 s that they had"}}
		}
	}
	c, err := compare.Compare(r)
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Comparison: c, Experiment: r.Experiment, Sites: r.Sites, Runs: r.Runs, Facts: r.Facts}
	const mark = "2 of 9 trials ended before the change showed"
	for _, format := range []string{"table", "markdown", "html", "csv"} {
		got := strings.Join(strings.Fields(html.UnescapeString(written(t, formatNamed(t, format), in))), " ")
		if !strings.Contains(got, mark) {
			t.Errorf("%s does not have it:\n%s", format, got)
		}
	}
	for _, row := range c.Comparisons {
		marked := slices.ContainsFunc(row.Warnings, func(w compare.Warning) bool {
			return strings.Contains(warningSentence(w), mark)
		})
		if want := row.Case == rr && row.Metric == "p50"; marked != want {
			t.Errorf("%s %s: marked %v, want %v", row.Case, row.Metric, marked, want)
		}
	}
}
