package html

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/doc/doctest"
	"github.com/knotmeter/knotmeter/internal/golden"
)

func rendered(t *testing.T, b doc.Block) string {
	t.Helper()
	text, err := Block(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestGolden(t *testing.T) { golden.Check(t, "testdata/block.html", rendered(t, doctest.Block())) }

// TestHostileTextStaysText checks that text makes no element and no attribute.
func TestHostileTextStaysText(t *testing.T) {
	root, err := html.Parse(strings.NewReader(rendered(t, doctest.HostileBlock())))
	if err != nil {
		t.Fatal(err)
	}
	texts := 0
	for n := range root.Descendants() {
		if n.Type == html.CommentNode || n.Data == "script" {
			t.Errorf("%v is there", n)
		}
		if n.Type == html.TextNode && strings.Contains(n.Data, "<script>") {
			texts++
		}
	}
	if texts < 20 {
		t.Errorf("the text is there %d times", texts)
	}
}

// TestManyRows checks that a page stays small enough, and says so.
func TestManyRows(t *testing.T) {
	b := doctest.Block()
	table := doctest.Table()
	table.Rows = slices.Repeat(table.Rows[:1], MaxRows+7)
	b.Parts = []doc.Element{table, doc.Items(slices.Repeat([]string{"item"}, MaxRows+7))}
	page := rendered(t, b)
	rows, items := strings.Count(page, `scope="row"`), strings.Count(page, "<li>")
	if rows != MaxRows || items != MaxRows {
		t.Errorf("%d rows, %d items", rows, items)
	}
	if strings.Count(page, "The first 500 of 507 are in this page.") != 2 {
		t.Error("it does not say what it leaves out")
	}
}

func TestBreakable(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "plain": "plain", "lab:vxlan+wireguard": "lab:<wbr>vxlan+<wbr>wireguard",
		"ends:": "ends:", "a/b": "a/<wbr>b", "<b>:&": "&lt;b&gt;:<wbr>&amp;",
	} {
		if got := strings.ReplaceAll(string(Breakable(name)), "&#43;", "+"); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
