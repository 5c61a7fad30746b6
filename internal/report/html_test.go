package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

var lookDirectory = flag.String("look", "", "write every format of the built experiment into this directory")

// rendered returns the page of an input, as text and parsed.
func rendered(t *testing.T, in Input) (text string, root *html.Node) {
	t.Helper()
	text = render(t, func(b *strings.Builder) error { return writeHTML(b, in) })
	root, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, root
}

// elements returns the elements for which keep returns true, in document order.
func elements(root *html.Node, keep func(*html.Node) bool) []*html.Node {
	var list []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && keep(n) {
			list = append(list, n)
		}
	}
	return list
}

// sectionRows returns the number of rows of a section's tables, without headings.
func sectionRows(root *html.Node, id string) (rows int) {
	for _, s := range elements(root, func(n *html.Node) bool { return n.Data == "section" && attribute(n, "id") == id }) {
		rows += len(elements(s, func(n *html.Node) bool { return n.Data == "th" && attribute(n, "scope") == "row" }))
	}
	return rows
}

func named(tag string) func(*html.Node) bool { return func(n *html.Node) bool { return n.Data == tag } }

func classed(tag, class string) func(*html.Node) bool {
	return func(n *html.Node) bool {
		return n.Data == tag && slices.Contains(strings.Fields(attribute(n, "class")), class)
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func content(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

func TestLook(t *testing.T) {
	if *lookDirectory == "" {
		t.Skip("no -look directory was given")
	}
	in := network(t)
	for _, f := range Formats() {
		if f.Files != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(*lookDirectory, f.File), []byte(written(t, f, in)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, in := range inputs(t) {
		files, err := svgFiles(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(*lookDirectory, name+"-"+f.Name), []byte(f.Text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text := render(t, func(b *strings.Builder) error { return writeHTML(b, in) })
		if err := os.WriteFile(filepath.Join(*lookDirectory, name+".html"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// scriptsPermitted fails the test unless the policy names every script, except data, by its hash.
func scriptsPermitted(t *testing.T, root *html.Node) {
	t.Helper()
	policy := ""
	for _, m := range elements(root, named("meta")) {
		if attribute(m, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(m, "content")
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'") ||
		strings.Contains(policy, "'unsafe-inline' '") || strings.Contains(policy, "script-src 'unsafe") {
		t.Errorf("the page's policy is %q", policy)
	}
	for _, n := range elements(root, named("script")) {
		if attribute(n, "type") == "application/json" {
			continue
		}
		hash := sha256.Sum256([]byte(content(n)))
		if len(n.Attr) > 0 || !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"'") {
			t.Errorf("the policy does not name a script: %.60s", content(n))
		}
	}
}

// selfContained fails the test if a page refers to anything outside of it.
func selfContained(t *testing.T, root *html.Node) {
	t.Helper()
	for _, n := range elements(root, func(*html.Node) bool { return true }) {
		switch n.Data {
		case "img", "link", "iframe", "object", "embed", "form", "base", "image", "foreignObject", "audio", "video":
			t.Errorf("the page has a %s element", n.Data)
		case "use":
			if !strings.HasPrefix(attribute(n, "href"), "#") {
				t.Errorf("the page uses %q", attribute(n, "href"))
			}
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "style" || a.Key == "srcset" {
				t.Errorf("%s has the attribute %s=%.60q", n.Data, a.Key, a.Val)
			}
			if a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s links to %.60q", n.Data, a.Val)
			}
		}
		if n.Data == "style" {
			for _, bad := range []string{"@import", "url(", "http:", "https:"} {
				if strings.Contains(content(n), bad) {
					t.Errorf("the style has %q", bad)
				}
			}
		}
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	for name, in := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			_, root := rendered(t, in)
			selfContained(t, root)
			scriptsPermitted(t, root)
			idsResolve(t, root)
			accessible(t, root)
			headingsOrdered(t, root)
		})
	}
}

// idsResolve fails the test unless every id is unique and every link and reference leads to one.
func idsResolve(t *testing.T, root *html.Node) {
	t.Helper()
	ids := map[string]bool{}
	for _, n := range elements(root, func(n *html.Node) bool { return attribute(n, "id") != "" }) {
		if ids[attribute(n, "id")] {
			t.Errorf("the id %q is there twice", attribute(n, "id"))
		}
		ids[attribute(n, "id")] = true
	}
	links := 0
	for _, n := range elements(root, func(*html.Node) bool { return true }) {
		for _, a := range n.Attr {
			switch {
			case a.Key == "href" && strings.HasPrefix(a.Val, "#"):
				links++
				if !ids[a.Val[1:]] {
					t.Errorf("the link %s leads nowhere", a.Val)
				}
			case a.Key == "aria-labelledby" || a.Key == "aria-describedby":
				if !ids[a.Val] {
					t.Errorf("%s refers to %q, which is not there", n.Data, a.Val)
				}
			}
		}
	}
	if links < 6 {
		t.Errorf("there are %d links", links)
	}
}

// accessible fails the test unless every figure, table and control has a text for screen readers.
func accessible(t *testing.T, root *html.Node) {
	t.Helper()
	for _, n := range elements(root, named("svg")) {
		inner := n.Parent.Data == "svg" || n.Parent.Data == "g"
		if inner || attribute(n, "aria-hidden") == "true" {
			continue
		}
		titles := elements(n, named("title"))
		if attribute(n, "role") != "img" || attribute(n, "aria-labelledby") == "" ||
			len(titles) == 0 || strings.TrimSpace(content(titles[0])) == "" {
			t.Errorf("a figure has no title: %v", n.Attr)
		}
	}
	controls := []string{"a", "summary", "button"}
	for _, n := range elements(root, func(n *html.Node) bool { return slices.Contains(controls, n.Data) }) {
		if strings.TrimSpace(content(n)+attribute(n, "aria-label")) == "" {
			t.Errorf("a %s has no words: %v", n.Data, n.Attr)
		}
	}
	for _, n := range elements(root, named("th")) {
		if attribute(n, "scope") == "" {
			t.Errorf("a heading of a table has no scope: %s", content(n))
		}
	}
	for _, tag := range []string{"main", "header", "footer", "nav", "h1", "title"} {
		if n := len(elements(root, func(n *html.Node) bool { return n.Data == tag && n.Namespace == "" })); n != 1 {
			t.Errorf("there are %d %s elements", n, tag)
		}
	}
	for _, n := range elements(root, named("section")) {
		if attribute(n, "aria-labelledby") == "" {
			t.Errorf("section %q has no name", attribute(n, "id"))
		}
	}
}

// headingsOrdered fails the test if a heading is more than one level below the one before it.
func headingsOrdered(t *testing.T, root *html.Node) {
	t.Helper()
	last := 0
	for _, n := range elements(root, func(n *html.Node) bool {
		return len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6'
	}) {
		level := int(n.Data[1] - '0')
		if level > last+1 {
			t.Errorf("after a heading of level %d comes %s %q", last, n.Data, content(n))
		}
		last = level
	}
}

func TestPageEmbedsTheComparison(t *testing.T) {
	in := network(t)
	_, root := rendered(t, in)
	script := elements(root, func(n *html.Node) bool { return attribute(n, "id") == "comparison" })[0]
	var got compare.Comparison
	if err := json.Unmarshal([]byte(content(script)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Comparisons) != len(in.Comparison.Comparisons) || got.Summary != in.Comparison.Summary {
		t.Errorf("the embedded comparison is another: %d rows, %q", len(got.Comparisons), got.Summary)
	}
}

func TestPageAnswersFirst(t *testing.T) {
	in := network(t)
	_, root := rendered(t, in)
	got, want := content(elements(root, named("h1"))[0]), prose.Typeset(in.Comparison.Headline)
	if !strings.Contains(got, "vxlan") || got != want {
		t.Errorf("the title is %q", got)
	}
	cells := elements(elements(root, classed("table", "hero"))[0], func(n *html.Node) bool {
		return n.Data == "td" && len(elements(n, classed("b", "badge"))) > 0
	})
	primary := in.Comparison.Primary()
	if len(cells) != len(primary) || len(primary) != 6 {
		t.Fatalf("%d cells for %d primary comparisons", len(cells), len(primary))
	}
	for i, r := range primary {
		cell := content(cells[i])
		for _, want := range []string{verdictWord(r), prose.Typeset(change(r.Change)),
			prose.Typeset(strings.TrimSuffix(interval(r.CI), " %"))} {
			if !strings.Contains(cell, want) {
				t.Errorf("cell %d lacks %q: %q", i+1, want, cell)
			}
		}
	}
}

func TestForestHasEveryComparisonWithAShapeAndAWord(t *testing.T) {
	in := network(t)
	_, root := rendered(t, in)
	shapes, words := map[string]string{}, map[string]string{}
	rows := 0
	section := elements(root, func(n *html.Node) bool { return attribute(n, "id") == "forest" })[0]
	for _, r := range elements(section, named("tr")) {
		marks := elements(r, func(n *html.Node) bool {
			return n.Data == "use" && strings.HasPrefix(attribute(n, "href"), "#fm")
		})
		if len(marks) == 0 {
			continue
		}
		rows++
		badge := elements(r, classed("span", "badge"))[0]
		class := strings.Fields(attribute(badge, "class"))[1]
		style := attribute(elements(r, named("g"))[0], "class")
		if !strings.Contains(style, class) {
			t.Errorf("the mark %q stands beside the word %q", style, class)
		}
		size := strings.Contains(style, "primary")
		key := fmt.Sprintf("%s %t", class, size)
		d := attribute(marks[0], "href")
		if before, ok := shapes[key]; ok && before != d {
			t.Errorf("%s has the shapes %q and %q", key, before, d)
		}
		shapes[key], words[class] = d, content(badge)
	}
	want := 0
	for _, g := range groups(in) {
		if g.Main {
			want += len(g.Rows)
		}
	}
	if rows != want || want != 11 {
		t.Errorf("%d rows of %d comparisons", rows, want)
	}
	for class, w := range words {
		for other, v := range words {
			if class != other && (v == w || shapes[class+" true"] != "" && shapes[class+" true"] == shapes[other+" true"]) {
				t.Errorf("%s and %s differ in colour alone", class, other)
			}
		}
	}
}

func TestPanelsShowEveryRun(t *testing.T) {
	in := network(t)
	_, root := rendered(t, in)
	runs := elements(root, func(n *html.Node) bool { return attribute(n, "id") == "runs" })[0]
	want := map[string]int{}
	for _, r := range in.Runs {
		if strings.HasPrefix(r.Case, "node-node") {
			continue // shown as the reference
		}
		switch {
		case !r.Valid():
			want["invalid"]++
		case r.Case == rr && r.Attempt == 1 && (r.Block == 4 || r.Block == 9):
			want["superseded"]++
		default:
			want["counts"]++
		}
	}
	got := map[string]int{}
	for _, n := range elements(runs, classed("path", "dots")) {
		got["counts"] += strings.Count(attribute(n, "d"), "h0")
	}
	for _, n := range elements(runs, func(n *html.Node) bool { return classed(n.Data, "dot")(n) }) {
		switch class := attribute(n, "class"); {
		case strings.Contains(class, "invalid"):
			got["invalid"]++
		case strings.Contains(class, "superseded"):
			got["superseded"]++
		default:
			got["counts"]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || want["invalid"] != 2 || want["superseded"] != 4 {
		t.Errorf("dots %v of runs %v", got, want)
	}
	if len(elements(runs, classed("path", "bound"))) == 0 {
		t.Error("no upper bound is drawn")
	}
}

func TestLatenciesAreOfTheRunsThatCount(t *testing.T) {
	in := network(t)
	b := newBuilder(in, groups(in), in.runs())
	for name, byTarget := range b.runs {
		for target, runs := range byTarget {
			for _, d := range in.distributions(runs, 99) {
				if want := int64(11 * 4000); d.count() != want || len(d.Runs) != 11 {
					t.Errorf("%s on %s: %d latencies of %d runs, want %d of 11", name, target, d.count(), len(d.Runs), want)
				}
			}
		}
	}
	_, root := rendered(t, in)
	if n := len(elements(root, classed("figure", "curves"))); n != 4 {
		t.Errorf("%d latency figures, want 4", n)
	}
}

func TestPercentilesNeedSamples(t *testing.T) {
	in := network(t)
	var few []result.Run
	for _, r := range in.Runs {
		if r.Case == rr && r.Block == 1 {
			few = append(few, r) // 4000 latencies: enough for p99.9, too few for p99.99
		}
	}
	in.Runs = few
	text, _ := rendered(t, in)
	if !strings.Contains(text, "too few") {
		t.Error("p99.99 of 4000 latencies is shown")
	}
	for _, d := range in.distributions(Input{Runs: few[:1]}.runs(), 0) {
		points := points(d.histogram, curveQuantiles(20))
		if last := points[len(points)-1].Quantile; last < 0.999 || last > 0.9992 {
			t.Errorf("the curve of 4000 latencies ends at %v", last)
		}
	}
}

func TestBrokenHistogramIsNamed(t *testing.T) {
	in := network(t)
	for i := range in.Runs {
		if len(in.Runs[i].Histograms) > 0 {
			in.Runs[i].Histograms[0].Encoded = "HISTFAAA broken"
			text, _ := rendered(t, in)
			if !strings.Contains(text, "Left out: run "+in.Runs[i].ID) {
				t.Error("the page does not say which histogram is broken")
			}
			return
		}
	}
}

var notFinite = regexp.MustCompile(`NaN|Inf`)

// hostile texts try to break out of the markup around them.
var hostile = []string{
	`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`,
	`' onmouseover='alert(1)`, `</title></svg><svg onload=alert(1)>`,
	`{{.JSON}}`, `javascript:alert(1)`, `<!--`, `]]>`,
	`</style><style>*{display:none}`, "\u2028\u0000\x1b[31m", `&lt;b&gt;`,
}

// poisonViews adds text to the names and sentences of a comparison except those of its rows.
func poisonViews(c *compare.Comparison, name func(string) string) {
	c.Gates = []compare.Gated{{Gate: name("gate"), Outcome: compare.Outcome(name("failed")), Sentence: name("sentence")}}
	c.Placebos = []string{name("lab:vxlan")}
	c.Groups = slices.Clone(c.Groups)
	for i := range c.Groups {
		g := &c.Groups[i]
		g.Case, g.Metric, g.Conclusion, g.Members = name(g.Case), name(g.Metric), name("conclusion"), slices.Clone(g.Members)
		for k := range g.Members {
			g.Members[k].Target, g.Members[k].Letters = name(g.Members[k].Target), name("a")
		}
	}
	c.Boxes = slices.Clone(c.Boxes)
	for i := range c.Boxes {
		b := &c.Boxes[i]
		b.Case, b.Metric, b.Target = name(b.Case), name(b.Metric), name(b.Target)
	}
}

// poison adds text to every part of an input that comes from outside.
func poison(in Input, text string) Input {
	name := func(s string) string { return s + text }
	in.Comparison.Summary, in.Comparison.Scope, in.Comparison.Baseline = name("Summary"), name("Scope"), name("base")
	in.Comparison.Headline = name("headline")
	in.Comparison.Experiment, in.Comparison.Warnings = name("id"), recorded(name("warning"))
	in.Comparison.Findings = []audit.Finding{
		{Rule: name("rule"), Severity: audit.Severity(name("severity")), Case: name("case"), Target: name("target"),
			Metric: name("metric"), Saw: name("saw"), Why: name("why"), More: name("more"), Place: name("place")},
		{Rule: name("rule"), Severity: audit.Error, Case: name(stream),
			Saw: name("saw"), Why: name("why"), Runs: []string{name("r")}},
	}
	poisonViews(&in.Comparison, name)
	in.Comparison.NotMeasured = []result.NotMeasured{{Target: name("t"), Case: "*", Reason: name("reason")},
		{Target: name("t"), Case: name(stream), Reason: name("reason")}}
	for i := range in.Comparison.Comparisons {
		r := &in.Comparison.Comparisons[i]
		r.Case, r.Metric, r.Target = name(r.Case), name(r.Metric), name(r.Target)
		r.Baseline, r.Sentence = name("base"), name("sentence")
		r.Warnings = recorded(name("warning"))
		if r.UpperBound != nil {
			bound := *r.UpperBound
			bound.Case = name(bound.Case)
			r.UpperBound = &bound
		}
	}
	in.Comparison.Targets = slices.Clone(in.Comparison.Targets)
	for i := range in.Comparison.Targets {
		t := &in.Comparison.Targets[i]
		t.Name, t.Invalid, t.Reasons = name(t.Name), 1, []compare.Reason{{Text: name("reason"), Runs: 1}}
	}
	for i := range in.Runs {
		r := &in.Runs[i]
		r.ID, r.Case, r.Tool = name(r.ID), name(r.Case), name(r.Tool)
		if r.Target == "lab:native" {
			r.Target = "base"
		}
		r.Target = name(r.Target)
		for k := range r.Values {
			r.Values[k].Metric = name(r.Values[k].Metric)
		}
		for k := range r.Histograms {
			r.Histograms[k].Name = name("latency")
		}
		r.Series = []result.Series{{Name: name("throughput"),
			Unit: unit.Unit(name("bit/s")), Step: 0.1, Values: []float64{1, 2, 3}}}
		if len(r.Invalid) > 0 {
			r.Invalid = []result.Warning{{Code: "clock", Text: name("reason")}}
		}
	}
	e := &in.Experiment
	e.ID, e.Suite, e.Tool, e.Version = name("id"), name("suite"), name("tool"), name("v")
	e.Design.Kind, e.Baseline = name("kind"), name("base")
	for i := range e.Targets {
		e.Targets[i] = result.Target{Name: name(e.Targets[i].Name), Spec: result.SpecOf(name("lab:x"))}
	}
	for i := range e.Cases {
		c := &e.Cases[i]
		c.Name, c.Workload, c.Metric = name(c.Name), name(c.Workload), name(c.Metric)
		c.Path = result.Path(name(string(c.Path)))
	}
	in.Facts = map[string][]result.Fact{name("base"): {{Name: name("kernel"), Value: name("6.1")}},
		name("lab:vxlan"): {{Name: name("kernel"), Value: name("6.2")}}}
	return in
}

// skeleton returns the elements of a page with the names of their attributes, without text.
func skeleton(root *html.Node) []string {
	var list []string
	for _, n := range elements(root, func(*html.Node) bool { return true }) {
		keys := []string{n.Data}
		for _, a := range n.Attr {
			keys = append(keys, a.Key)
		}
		list = append(list, strings.Join(keys, " "))
	}
	return list
}

func TestHostileTextStaysText(t *testing.T) {
	check := func(text string, input func() Input) {
		// Names break at separators.
		same := strings.Map(func(r rune) rune {
			if strings.ContainsRune(":+/_-", r) {
				return r
			}
			return 'x'
		}, text)
		_, harmless := rendered(t, poison(input(), same))
		_, root := rendered(t, poison(input(), text))
		want, got := skeleton(harmless), skeleton(root)
		if len(want) < 150 {
			t.Fatalf("the harmless page has %d elements only", len(want))
		}
		if !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("with %q element %d is %q, not %q", text, i, got[i], want[i])
					break
				}
			}
			t.Errorf("with %q the page has %d elements, not %d", text, len(got), len(want))
		}
		if !strings.Contains(text, "\x00") && !strings.Contains(content(elements(root, named("h1"))[0]), text) {
			t.Errorf("%q is not shown as itself", text)
		}
	}
	for _, text := range hostile {
		check(text, small)
	}
	check(strings.Join(hostile, " "), func() Input { return network(t) })
}

func TestFiguresHaveNumbersOnly(t *testing.T) {
	in := small()
	r := row("lab:ipip", 9, 0, math.NaN(), math.Inf(-1), math.Inf(1), compare.Undecided, compare.None)
	r.BaselineMedian, r.TargetMedian = compare.Missing(), compare.Missing()
	r.BaselineQuartiles = [2]compare.Number{compare.Missing(), compare.Missing()}
	in.Comparison.Comparisons = append(in.Comparison.Comparisons, r,
		row("lab:bridge", 9, 9, 0.1, math.Inf(-1), math.Inf(1), compare.Undecided, compare.None),
		row("lab:macvlan", 9, 9, math.Inf(1), math.NaN(), math.NaN(), compare.Undecided, compare.None))
	_, root := rendered(t, in)
	for _, svg := range elements(root, named("svg")) {
		for _, n := range elements(svg, func(*html.Node) bool { return true }) {
			for _, a := range n.Attr {
				if a.Key != "aria-label" && a.Key != "class" && notFinite.MatchString(a.Val) {
					t.Errorf("%s has %s=%q", n.Data, a.Key, a.Val)
				}
			}
		}
	}
}

func TestUnpairedPageSaysSo(t *testing.T) {
	in := small()
	in.Comparison.Paired = false
	text, _ := rendered(t, in)
	if !strings.Contains(text, "Unpaired:") || strings.Contains(text, "signed-rank") {
		t.Error("a page of two directories describes blocks")
	}
}

func TestAxisLabels(t *testing.T) {
	tests := []struct {
		ticks []float64
		unit  unit.Unit
		want  string
	}{
		{[]float64{0, 5e9, 10e9}, "bit/s", "0 Gbit/s|5 Gbit/s|10 Gbit/s"},
		{[]float64{2.205e-5, 2.21e-5, 2.215e-5}, "s", "22.05 µs|22.10 µs|22.15 µs"},
		{[]float64{0.001, 0.002}, "ratio", "0.1 %|0.2 %"},
		{[]float64{0, 2, 4}, "1", "0|2|4"},
		{[]float64{1e-5, 1e-3}, "s", "0.01 ms|1.00 ms"},
		{[]float64{0.5, 1}, "s/GB", "0.5 s/GB|1.0 s/GB"},
		{[]float64{0, 5e9}, unit.BytePerSecond, "0 GB/s|5 GB/s"},
		{[]float64{0, 800 << 20}, unit.VolumeRate, "0 MiB/s|100 MiB/s"},
		{nil, "s", ""},
		{[]float64{5}, "strange", "5 strange"},
	}
	for _, tt := range tests {
		if got := strings.Join(axisLabels(tt.unit)(tt.ticks), "|"); got != tt.want {
			t.Errorf("labels of %v %s: %s, want %s", tt.ticks, tt.unit, got, tt.want)
		}
	}
}
