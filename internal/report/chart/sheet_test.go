package chart

import (
	"html/template"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/doc"
)

func TestLettersFit(t *testing.T) {
	l := Font{Size: 13}
	for _, test := range []struct {
		text  string
		width float64
		want  string
	}{
		{"lab:native", 100, "lab:native"}, {"", 10, ""}, {"lab:native?mtu=9000&label=a", 0, "…"},
		{"lab:vxlan+wireguard", 100, "lab:vx…guard"},
	} {
		got := l.Fit(test.text, test.width)
		if got != test.want || test.width > 0 && l.Width(got) > test.width {
			t.Errorf("%q in %v is %q, want %q, and is %v wide", test.text, test.width, got, test.want, l.Width(got))
		}
	}
	if wide, narrow := l.Width("漢字"), l.Width("ab"); wide < 1.5*narrow {
		t.Errorf("ideographs are %v wide, letters %v", wide, narrow)
	}
	if l.Width("word") >= (Font{Size: 13, Bold: true}).Width("word") {
		t.Error("bold letters are no wider")
	}
}

func TestLettersBreak(t *testing.T) {
	l := Font{Size: 10}
	for _, test := range []struct {
		text  string
		width float64
		most  int
		want  string
	}{
		{"one two three", 60, 9, "one two|three"}, {"one two three fourteen", 60, 2, "one two|thre…teen"}, {"", 60, 3, ""},
		{"kube:my-cluster/eu", 60, 9, "kube:my-|cluster/eu"}, {"x kube:my-cluster", 60, 9, "x|kube:my-|cluster"},
		{"wwwwwwwwww", 30, 9, "www|www|www|w"}, {"ab", 1, 9, "a|b"}, {"5\u00a0% more", 60, 9, "5\u00a0% more"},
	} {
		if got := strings.Join(l.Lines(test.text, test.width, test.most), "|"); got != test.want {
			t.Errorf("%q in %d lines of %v is %q, want %q", test.text, test.most, test.width, got, test.want)
		}
	}
}

// TestSheet checks that a file has colours instead of variables, and no characters that XML does not allow.
func TestSheet(t *testing.T) {
	s := NewSheet(640, "a < b & \x00")
	s.Paragraph("one \x1b <two>", Font{Size: 14})
	s.Legend([]doc.Label{{Name: "a line", Style: 2}, {Name: strings.Repeat("bars ", 99), Style: 3, Bars: true}},
		Font{Size: 12})
	s.Verdicts(0.02, Font{Size: 12})
	s.Define(NewForest(nil, 0.02).Shapes())
	if height := s.Place(StripAxis(60), 0, s.Y, 300); height != 18 {
		t.Errorf("the axis is %v high", height)
	}
	text := wellFormed(t, template.HTML(s.File(0)))
	for part, want := range map[string]int{"a &lt; b &amp; \uFFFD</title>": 1, "one \uFFFD &lt;two&gt;</text>": 1,
		"var(": 0, "#b34a12": 3, `class="fill3"`: 1, `class="key series2"`: 1, `class="hollow"`: 1,
		"within ±2\u00a0%": 1} {
		if got := strings.Count(text, part); got < want || want == 0 && got > 0 {
			t.Errorf("%q is there %d times, want %d: %s", part, got, want, text)
		}
	}
	if text != s.File(0) {
		t.Error("the same sheet gives another file")
	}
}
