package report

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/net/html"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/explain"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/result"
)

// written returns the output of a format; the files of a format with several are joined.
func written(t *testing.T, f Format, in Input) string {
	t.Helper()
	if f.Files == nil {
		return render(t, func(b *strings.Builder) error { return f.Write(b, in) })
	}
	files, err := f.Files(in)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(file.Name + "\n" + file.Text)
	}
	return all.String()
}

func formatNamed(t *testing.T, name string) Format {
	t.Helper()
	i := slices.IndexFunc(Formats(), func(f Format) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("there is no format %s", name)
	}
	return Formats()[i]
}

func TestGoldenOfEveryFormat(t *testing.T) {
	for _, f := range Formats() {
		if slices.Contains([]string{"html", "svg"}, f.Name) {
			continue // other tests check their structure
		}
		t.Run(f.Name, func(t *testing.T) {
			golden.Check(t, "testdata/small-"+f.File, strings.ReplaceAll(written(t, f, small()), explain.Rules, "RULES"))
		})
	}
}

func TestEveryFormatIsDeterministic(t *testing.T) {
	in := network(t)
	for _, f := range Formats() {
		first := written(t, f, in)
		if written(t, f, network(t)) != first {
			t.Errorf("%s: equal input gives different output", f.Name)
		}
	}
}

func TestEveryFormatWritesAnEmptyInput(t *testing.T) {
	for _, f := range Formats() {
		if written(t, f, Input{}) == "" {
			t.Errorf("%s of an empty input is empty", f.Name)
		}
	}
}

type brokenWriter struct{}

var errFull = errors.New("no space left")

func (brokenWriter) Write([]byte) (int, error) { return 0, errFull }

func TestEveryFormatReportsAWriteError(t *testing.T) {
	for _, f := range Formats() {
		if f.Files != nil {
			continue
		}
		if err := f.Write(brokenWriter{}, small()); !errors.Is(err, errFull) {
			t.Errorf("%s: %v is not the writer's error", f.Name, err)
		}
	}
}

// TestJSONIsThatOfTheComparison checks that the JSON, whose rows are written one by one, equals that of the whole
// comparison.
func TestJSONIsThatOfTheComparison(t *testing.T) {
	for name, in := range map[string]Input{"network": network(t), "small": small(), "no rows": input(), "empty": {}} {
		if in.Comparison.Comparisons == nil {
			in.Comparison.Comparisons = []compare.Row{}
		}
		want, err := json.MarshalIndent(newDocument(in.Comparison), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if got := written(t, formatNamed(t, "json"), in); got != string(want)+"\n" {
			t.Errorf("%s: the JSON differs from that of the comparison:\n%s", name, cmp.Diff(string(want)+"\n", got))
		}
	}
	in := small()
	in.Comparison.Summary, in.Comparison.Comparisons[0].Case = "\n  \"comparisons\": []", "x\n  \"comparisons\": []"
	var back compare.Comparison
	if err := json.Unmarshal([]byte(written(t, formatNamed(t, "json"), in)), &back); err != nil ||
		back.Summary != in.Comparison.Summary {
		t.Errorf("%q, %v", back.Summary, err)
	}
}

func TestJSONReadsBack(t *testing.T) {
	in := network(t)
	numbers := cmp.Comparer(func(a, b compare.Number) bool { return a == b || !a.Known() && !b.Known() })
	var got compare.Comparison
	if err := json.Unmarshal([]byte(written(t, formatNamed(t, "json"), in)), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in.Comparison, got, numbers, cmpopts.IgnoreUnexported(compare.Row{})); diff != "" {
		t.Errorf("the JSON reads back as another comparison (-want +got):\n%s", diff)
	}
}

func TestCSVReadsBack(t *testing.T) {
	in := network(t)
	in.Runs[3].Target = "a \"quoted\", name\nof two lines"
	in.Runs[5].Values = nil
	rows, err := csv.NewReader(strings.NewReader(written(t, formatNamed(t, "csv"), in))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(csvColumns, rows[0]); diff != "" {
		t.Errorf("the columns (-want +got):\n%s", diff)
	}
	primary := map[string]string{}
	for _, c := range in.Experiment.Cases {
		primary[c.Name] = c.Metric
	}
	next := 1
	for _, r := range in.Runs {
		values := r.Values
		if len(values) == 0 {
			values = []result.Value{{}}
		}
		for _, v := range values {
			cell := map[string]string{}
			for i, name := range rows[0] {
				cell[name] = rows[next][i]
			}
			next++
			want := map[string]string{
				// A reader turns CR LF within a field into LF; this input has none.
				"experiment": in.Experiment.ID, "run": r.ID, "target": r.Target,
				"case": r.Case, "metric": v.Metric, "unit": string(v.Unit),
				"better": string(v.Better), "block": strconv.Itoa(r.Block),
				"valid": strconv.FormatBool(r.Valid()), "reason": strings.Join(result.Texts(r.Invalid), "; "),
				"value": "", "main": "",
			}
			if v.Metric != "" {
				want["value"], want["main"] = formatFloat(v.Number), strconv.FormatBool(v.Metric == primary[r.Case])
			}
			for name, text := range want {
				if cell[name] != text {
					t.Errorf("row %d, %s: %q, want %q", next-1, name, cell[name], text)
				}
			}
		}
	}
	if next != len(rows) {
		t.Errorf("%d rows, want %d", len(rows), next)
	}
}

func TestJUnitReadsBack(t *testing.T) {
	in := network(t)
	in.Comparison.Comparisons[0].Sentence = "A <b>sentence</b> & a \x00 control character."
	var got junitSuites
	if err := xml.Unmarshal([]byte(written(t, formatNamed(t, "junit"), in)), &got); err != nil {
		t.Fatal(err)
	}
	suite := got.Suites[0]
	want := len(in.Comparison.Primary()) + len(in.Comparison.NotMeasured)
	if suite.Tests != want || len(suite.Cases) != want || suite.Failures != 0 {
		t.Errorf("tests=%d, %d cases, failures=%d; want %d and none", suite.Tests, len(suite.Cases), suite.Failures, want)
	}
	if !strings.Contains(suite.Cases[0].Out, "A <b>sentence</b> & a \uFFFD control") {
		t.Errorf("system-out is %q", suite.Cases[0].Out)
	}
	skipped := 0
	for i, r := range in.Comparison.Primary() {
		c := suite.Cases[i]
		if c.Class != r.Case || (c.Skipped != nil) != (r.Verdict == compare.Undecided) {
			t.Errorf("case %d is %+v, of a row that is %s", i, c, r.Verdict)
		}
	}
	for _, c := range suite.Cases {
		if c.Skipped != nil {
			skipped++
		}
	}
	if skipped == 0 || suite.Skipped != skipped {
		t.Errorf("skipped=%d, but %d cases are", suite.Skipped, skipped)
	}
}

var (
	sampleLine = regexp.MustCompile(
		`^([a-zA-Z_][a-zA-Z0-9_]*)\{([a-z_]+="([^"\\\n]|\\.)*",?)+\} (NaN|[+-]Inf|[0-9.e+-]+)$`)
	metaLine = regexp.MustCompile(`^# (TYPE|UNIT|HELP) ([a-zA-Z_][a-zA-Z0-9_]*) (.*)$`)
)

func TestOpenMetricsIsWellFormed(t *testing.T) {
	in := network(t)
	in.Comparison.Comparisons[0].Target = "a \"b\" \\ c\nd"
	text := written(t, formatNamed(t, "openmetrics"), in)
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok {
		t.Fatal("the text does not end with # EOF")
	}
	current, done, seen := "", map[string]bool{}, map[string]bool{}
	for l := range strings.Lines(body) {
		l = strings.TrimSuffix(l, "\n")
		if m := metaLine.FindStringSubmatch(l); m != nil {
			if m[2] != current {
				if done[m[2]] {
					t.Errorf("the family %s is in two places", m[2])
				}
				current, done[m[2]] = m[2], true
			}
			if m[1] == "UNIT" && !strings.HasSuffix(current, "_"+m[3]) {
				t.Errorf("the family %s has the unit %s", current, m[3])
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(l)
		if m == nil {
			t.Errorf("not a sample: %q", l)
			continue
		}
		if m[1] != current {
			t.Errorf("a sample of %s among those of %s", m[1], current)
		}
		series := l[:strings.LastIndex(l, " ")]
		if seen[series] {
			t.Errorf("the series %s is there twice", series)
		}
		seen[series] = true
	}
}

var benchLineForm = regexp.MustCompile(`^Benchmark[^a-z\s]\S* 1( [0-9.e+-]+ \S+)+$`)

func TestBenchHasEveryRunThatCounts(t *testing.T) {
	in := network(t)
	want := 0
	for _, r := range in.Runs {
		// The built experiment repeated two blocks of this case. The cases of this path are node-to-node references.
		if !strings.HasPrefix(r.Case, "node-node/") && (r.Case != rr || r.Attempt == 2 || r.Block != 4 && r.Block != 9) {
			want++
		}
	}
	lines := 0
	for l := range strings.Lines(written(t, formatNamed(t, "bench"), in)) {
		if strings.HasPrefix(l, "Benchmark") {
			lines++
			if !benchLineForm.MatchString(strings.TrimSuffix(l, "\n")) {
				t.Errorf("not a result line: %q", l)
			}
		}
	}
	if lines != want {
		t.Errorf("%d lines of %d runs that count", lines, want)
	}
}

func TestBenchName(t *testing.T) {
	for name, want := range map[string]string{
		rr: "Pod-pod/other/tcp-rr", "": "", "with space/x": "With_space/x",
		"imported-4": "Imported-4-1", "über": "Über", "sizes/4": "Sizes/4",
	} {
		if got := benchName(name); got != want {
			t.Errorf("benchName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMarkdownCannotBeBrokenOut(t *testing.T) {
	in := small()
	evil := "a|b <script>alert(1)</script> `x` [l](javascript:1) @team\n# head ```"
	in.Comparison.Comparisons[0].Target, in.Comparison.Targets[1].Name = evil, evil
	in.Experiment.Targets[1].Spec = result.SpecOf(evil)
	text := written(t, formatNamed(t, "markdown"), in)
	table := regexp.MustCompile(`(?m)^\|.*$`).FindAllString(text, -1)
	if len(table) == 0 {
		t.Fatalf("no table in\n%s", text)
	}
	cells := func(l string) int { return strings.Count(strings.ReplaceAll(l, `\|`, ""), "|") }
	for _, l := range table[:3] {
		if cells(l) != cells(table[0]) {
			t.Errorf("%q has %d separators, the head %d", l, cells(l), cells(table[0]))
		}
	}
	for _, bad := range []string{"<script", "\n# head", "[l](", " @team"} {
		outside := regexp.MustCompile("(?s)```sh.*?\n```").ReplaceAllString(text, "")
		if strings.Contains(outside, bad) {
			t.Errorf("%q is not escaped in\n%s", bad, text)
		}
	}
	if strings.Count(text, "```") != 2 {
		t.Errorf("a label ends the fenced block:\n%s", text)
	}
}

// TestImportedHasNoCommand checks that imported runs have no command in any format.
func TestImportedHasNoCommand(t *testing.T) {
	in := small()
	in.Experiment.Imported, in.Comparison.Paired = "vault-benchmark", false
	for _, f := range Formats() {
		if f.Write == nil {
			continue // pictures
		}
		var b strings.Builder
		if err := f.Write(&b, in); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "knotmeter run") {
			t.Errorf("%s has a command that would repeat it", f.Name)
		}
	}
}

func TestCommand(t *testing.T) {
	in := small()
	in.Experiment.Targets[1].Spec = result.SpecOf("lab:vxlan?mtu=9000&label=it's big")
	in.Experiment.Chosen, in.Experiment.Primaries = []string{"pod-*"}, []string{"*/tcp-rr"}
	in.Experiment.Metric = "mean"
	got := strings.Join(command(in), " ")
	want := `knotmeter run --target lab:native --target 'lab:vxlan?mtu=9000&label=it'\''s big' ` +
		`--suite network:quick --case 'pod-*' --primary '*/tcp-rr' ` +
		`--metric mean --tool native --blocks 2 --duration 1s --warmup 200ms --alpha 0.05 --delta 2% --seed 7`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFormatsHaveNamesOfTheirOwn(t *testing.T) {
	names, files := map[string]bool{}, map[string]bool{}
	for _, f := range Formats() {
		if names[f.Name] || files[f.File] || f.About == "" {
			t.Errorf("the format %+v is not one of its own", f.Name)
		}
		names[f.Name], files[f.File] = true, true
		if (f.Write == nil) == (f.Files == nil) || (f.Files != nil) != strings.HasSuffix(f.File, "/") {
			t.Errorf("%s has not one way to be written, or its name is that of another", f.Name)
		}
	}
}

func TestTwoDirectories(t *testing.T) {
	a, b := network(t), network(t)
	b.Experiment.ID = "2026-11-28-b"
	in, err := several(result.Results{Experiment: a.Experiment, Runs: a.Runs, Facts: a.Facts},
		result.Results{Experiment: b.Experiment, Runs: b.Runs[:200], Facts: b.Facts})
	if err != nil {
		t.Fatal(err)
	}
	table := textOf(t, in, TextOptions{Verbose: true})
	for _, want := range []string{"lab:native (2026-11-28-b)", "lab:vxlan (" + a.Experiment.ID + ")", "Unpaired"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if strings.Contains(table, "spent measuring") {
		t.Error("the time between two experiments counts as one of them")
	}
	rows, err := csv.NewReader(strings.NewReader(written(t, formatNamed(t, "csv"), in))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	count, seen := map[string]int{}, map[[2]string]bool{} // a run has several rows
	for _, r := range rows[1:] {
		if run := [2]string{r[0], r[1]}; !seen[run] {
			seen[run] = true
			count[r[0]]++
		}
	}
	if count[a.Experiment.ID] != len(a.Runs) || count["2026-11-28-b"] != 200 {
		t.Errorf("runs by experiment: %v", count)
	}
	// Each target has a column, and each group is in that of its own baseline.
	for l := range strings.Lines(written(t, formatNamed(t, "markdown"), in)) {
		if strings.HasPrefix(l, "| pod-pod") && strings.Count(l, "Gbit/s") == 1 {
			t.Errorf("a row has no baseline: %s", l)
		}
	}
	_, root := rendered(t, in)
	runs := elements(root, func(n *html.Node) bool { return attribute(n, "id") == "runs" })[0]
	panels := elements(runs, classed("div", "case"))
	if len(panels) == 0 {
		t.Fatal("no run is shown")
	}
	for _, p := range panels {
		if len(elements(p, func(n *html.Node) bool { return classed(n.Data, "dot")(n) || classed(n.Data, "dots")(n) })) == 0 {
			t.Errorf("no run in the panel %s", content(p))
		}
	}
	bench := written(t, formatNamed(t, "bench"), in)
	if !strings.Contains(bench, "target: lab:vxlan (2026-11-28-b)\nBenchmark") {
		t.Error("the benchmark format does not tell the two experiments apart")
	}
}
