package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/golden"
	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// texts parses a file as XML and returns the content of its text elements, a line each. The root must be a
// self-contained figure.
func texts(t *testing.T, file string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(file))
	var found strings.Builder
	inText, first := false, true
	ids, uses := map[string]bool{}, []string{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %.2000s", err, file)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if first && (e.Name.Local != "svg" || e.Name.Space != "http://www.w3.org/2000/svg") {
				t.Errorf("the root is %v", e.Name)
			}
			first, inText = false, e.Name.Local == "text"
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "id":
					if ids[a.Value] {
						t.Errorf("the id %q is there twice", a.Value)
					}
					ids[a.Value] = true
				case "href", "aria-labelledby", "aria-describedby":
					uses = append(uses, strings.TrimPrefix(a.Value, "#"))
				case "src", "style", "onload":
					t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
			if slices.Contains([]string{"script", "image", "foreignObject", "a"}, e.Name.Local) {
				t.Errorf("there is a %s", e.Name.Local)
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				found.Write(e)
				found.WriteString("\n")
			}
		}
	}
	for _, id := range uses {
		if !ids[id] {
			t.Errorf("%q is referred to, and is not there", id)
		}
	}
	if strings.Contains(file, "var(") || strings.Contains(file, "@import") || strings.Contains(file, "url(") {
		t.Error("the style needs what is not in the file, or what only browsers know")
	}
	return found.String()
}

// drawnFiles returns the files of the SVG format.
func drawnFiles(t *testing.T, in Input) []File {
	t.Helper()
	files, err := svgFiles(in)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestGoldenOfSVG(t *testing.T) {
	for _, f := range drawnFiles(t, small()) {
		t.Run(f.Name, func(t *testing.T) { golden.Check(t, "testdata/figures/"+f.Name, f.Text) })
	}
}

// TestFiguresOfThePageAreFiles checks that each figure of a page that can be saved is a file of the same name, and that
// the card is the first file.
func TestFiguresOfThePageAreFiles(t *testing.T) {
	for name, in := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			_, root := rendered(t, in)
			var want, got []string
			for _, n := range elements(root, func(n *html.Node) bool { return true }) {
				if file := attribute(n, "data-copy"); file != "" {
					want = append(want, file+".svg")
				}
			}
			for _, f := range drawnFiles(t, in) {
				if texts(t, f.Text) == "" {
					t.Errorf("%s has no text", f.Name)
				}
				if regexp.MustCompile(`="[^"]*(NaN|Inf)`).MatchString(f.Text) {
					t.Errorf("%s has a number that is none", f.Name)
				}
				got = append(got, f.Name)
			}
			if got[0] != "card.svg" {
				t.Errorf("the first file is %s", got[0])
			}
			got = got[1:]
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || name == "network" && len(want) < 12 {
				t.Errorf("the files are\n%q, the figures of the page\n%q", got, want)
			}
			if len(slices.Compact(got)) != len(want) {
				t.Error("two figures have the same name")
			}
		})
	}
}

// TestEveryKindOfFigureIsAFile checks that the tests cover every kind of figure.
func TestEveryKindOfFigureIsAFile(t *testing.T) {
	kinds := map[string]bool{}
	for _, in := range inputs(t) {
		for _, f := range drawnFiles(t, in) {
			kind, _, _ := strings.Cut(strings.TrimSuffix(f.Name, ".svg"), "-")
			kinds[kind] = true
			if !figureFile.MatchString(f.Name) {
				t.Errorf("%s is not known as a figure's file, so a later report leaves it", f.Name)
			}
		}
	}
	for _, kind := range []string{"card", "answer", "forest", "scale", "paths", "percentiles", "runs", "order", "series"} {
		if !kinds[kind] {
			t.Errorf("no file shows %s", kind)
		}
	}
}

func TestHostileTextStaysTextInFiles(t *testing.T) {
	for _, text := range append(hostile, "\x00\x01\x1b\ufffe", "a\xffb", strings.Repeat("long", 200)) {
		for _, f := range drawnFiles(t, poison(small(), text)) {
			texts(t, f.Text)
			if strings.ContainsAny(f.Name, "/\\<>\"' \x00") || len(f.Name) > 90 {
				t.Errorf("a file is named %q", f.Name)
			}
		}
	}
}

func TestFigureNamesDiffer(t *testing.T) {
	n := figureNames{}
	var got []string
	for _, parts := range [][]string{{"runs", "pod-pod/other/tcp-rr", "p50"}, {"runs", "pod-pod/other:tcp-rr", "p50"},
		{"runs", "../x"}, {"RUNS", "..", "x"}, {""}} {
		got = append(got, n.unique(parts...))
	}
	want := []string{"runs-pod-pod-other-tcp-rr-p50", "runs-pod-pod-other-tcp-rr-p50-2", "runs-..-x", "runs-..-x-2", ""}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("x", 300)
	if a, b := n.unique(long), n.unique(long); a == b || len(a) > 80 || len(b) > 80 {
		t.Errorf("%q and %q", a, b)
	}
}

// TestCard checks that a card has the size of link previews for every content, in fonts that are readable at half the
// size.
func TestCard(t *testing.T) {
	seen := map[string]string{}
	all := map[string]Input{"nothing": input(), "long": poison(small(), strings.Repeat(" long", 200))}
	for name, in := range inputs(t) {
		all[name] = in
	}
	for name, in := range all {
		text := card(in)
		said := texts(t, text)
		if !strings.Contains(text, `width="1200" height="630" viewBox="0 0 1200 630"`) ||
			!strings.HasPrefix(said, "KNOTMETER\n") {
			t.Errorf("the card of %s has another size, or no name: %.300s", name, text)
		}
		for _, m := range regexp.MustCompile(`<text class="[^"]*" x="([0-9.]+)" y="([0-9.]+)" font-size="([0-9.]+)"`).
			FindAllStringSubmatch(text, -1) {
			var x, y, size float64
			if _, err := fmt.Sscan(strings.Join(m[1:], " "), &x, &y, &size); err != nil {
				t.Fatal(err)
			}
			if size < 19 || y-size < 0 || y > cardHeight-12 || x > cardWidth {
				t.Errorf("%s: a text of size %v at %v, %v", name, size, x, y)
			}
		}
		if other, same := seen[text]; same && name != "nothing" && other != "nothing" {
			t.Errorf("the cards of %s and %s are the same", name, other)
		}
		seen[text] = name
	}
	said := texts(t, card(network(t)))
	for _, want := range []string{"vxlan\n", "pod-pod/other/tcp-rr\n", "9.15 Gbit/s\n", "−30.2 % worse\n", "226 runs"} {
		if !strings.Contains(strings.ReplaceAll(said, "\u00a0", " "), want) {
			t.Errorf("the card does not say %q:\n%s", want, said)
		}
	}
}

// TestFilesHaveTheWarnings checks that figures of comparisons have the warnings below them.
func TestFilesHaveTheWarnings(t *testing.T) {
	in := small()
	in.Comparison.Warnings, in.Comparison.Paired = recorded("The clock jumped."), false
	for _, f := range drawnFiles(t, in) {
		if kind, _, _ := strings.Cut(f.Name, "-"); !slices.Contains([]string{"answer.svg", "forest"}, kind) {
			continue
		}
		said := strings.ReplaceAll(texts(t, f.Text), "\n", " ")
		for _, want := range []string{"The clock jumped.", unpairedText} {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q", f.Name, want)
			}
		}
	}
}

func TestPictureTitleCountsManyTargets(t *testing.T) {
	var list []compare.Row
	for i := range 9 {
		list = append(list, row(fmt.Sprintf("kube:a-rather-long-name-%d", i),
			9, 6, -0.3, -0.33, -0.26, compare.Different, compare.WorseThan))
	}
	if got, want := figureTitle(input(list...).Comparison), "9 targets against lab:native"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got, want := figureTitle(input(list[:1]...).Comparison), "kube:a-rather-long-name-0 against lab:native"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOrderCrossesInvalidRuns checks that the strips of the order have a cross for each invalid run, as the sentence
// below them states, and none for a valid run of a repeated block.
func TestOrderCrossesInvalidRuns(t *testing.T) {
	in := small()
	counts := map[chart.State]int{}
	for _, r := range in.runs() {
		counts[r.state]++
	}
	if counts[chart.Invalid] != 1 || counts[chart.Superseded] != 1 {
		t.Fatalf("runs by state: %v", counts)
	}
	files := drawnFiles(t, in)
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == "order.svg" })
	if n := strings.Count(files[i].Text, `class="dot invalid"`); n != 1 {
		t.Errorf("%d crosses for an invalid run", n)
	}
	page, _ := rendered(t, in)
	for name, text := range map[string]string{"file": texts(t, files[i].Text), "page": page} {
		if !strings.Contains(strings.ReplaceAll(text, "\n", " "), "A cross marks an invalid run.") {
			t.Errorf("the %s does not explain the cross", name)
		}
	}
}
