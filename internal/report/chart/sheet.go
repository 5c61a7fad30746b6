package chart

import (
	_ "embed" // the style sheets
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/prose"
)

var (
	//go:embed colours.css
	colours string
	//go:embed figure.css
	figureStyle string
	//go:embed sheet.css
	sheetStyle string
)

// Style returns the style sheet of figures in a page, with its colours in light and dark.
func Style() string { return colours + figureStyle }

// variableDefinition matches the definition of a colour in a style sheet, variableUse a use of it, cssComment a
// comment.
var (
	variableDefinition = regexp.MustCompile(`--([a-z0-9]+): ([^;]+);`)
	variableUse        = regexp.MustCompile(`var\(--([a-z0-9]+)\)`)
	cssComment         = regexp.MustCompile(`(?s)/\*.*?\*/\n?`)
)

// plainStyle returns the style sheet of an SVG file. Its variables are replaced by the light colours, which come first
// in the style sheet: a file may be shown on any background, and viewers other than browsers do not support variables.
func plainStyle() string {
	values := map[string]string{}
	for _, c := range variableDefinition.FindAllStringSubmatch(colours, -1) {
		if _, known := values[c[1]]; !known {
			values[c[1]] = c[2]
		}
	}
	style := cssComment.ReplaceAllString(figureStyle+sheetStyle, "")
	return variableUse.ReplaceAllStringFunc(style, func(use string) string {
		return values[variableUse.FindStringSubmatch(use)[1]]
	})
}

// A Sheet is a figure as a file: an SVG with its style and its texts, in fonts that most systems have. Texts get the
// space of the widest of these fonts, so they neither overlap nor exceed the edge.
type Sheet struct {
	Width float64 // px
	Y     float64 // px, top of the next element
	title string
	b     strings.Builder
}

// Edge is the empty margin at each side, px.
const Edge = 28.0

// NewSheet begins a sheet of a width in px. Screen readers read the title.
func NewSheet(width float64, title string) *Sheet {
	return &Sheet{Width: width, Y: Edge - 6, title: title}
}

// Inner returns the width between the margins, px.
func (s *Sheet) Inner() float64 { return s.Width - 2*Edge }

// An Anchor is the point of a text that its x refers to.
type Anchor string

// The anchors.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text writes a line with its baseline at y, cut to a width, all in px.
func (s *Sheet) Text(text string, x, y float64, anchor Anchor, f Font, width float64) {
	weight := ""
	if f.Bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(&s.b, `<text class="%s" x="%s" y="%s" font-size="%s" text-anchor="%s"%s>%s</text>`+"\n", f.Class,
		decimal2(x), decimal2(y), decimal2(f.Size), anchor, weight, html.EscapeString(f.Fit(text, width)))
}

// Lines writes a text below y in no more than most lines of a width, and returns the y of its end, all in px.
func (s *Sheet) Lines(text string, x, y float64, anchor Anchor, f Font, width float64, most int) float64 {
	for _, line := range f.Lines(text, width, most) {
		s.Text(line, x, y+f.Size, anchor, f, width)
		y += f.Size * 1.3
	}
	return y
}

// Paragraph writes a text over the whole width, in at most 12 lines.
func (s *Sheet) Paragraph(text string, f Font) {
	s.Y = s.Lines(text, Edge, s.Y, Start, f, s.Inner(), 12)
}

// Place puts a figure of a page at a position, and returns its height, all in px.
func (s *Sheet) Place(figure template.HTML, x, y, width float64) float64 {
	_, rest, _ := strings.Cut(string(figure), `height="`)
	height, _, _ := strings.Cut(rest, `"`)
	value, _ := strconv.ParseFloat(height, 64) // cannot fail: newCanvas wrote it
	body, _ := strings.CutPrefix(string(figure), "<svg")
	fmt.Fprintf(&s.b, `<svg x="%s" y="%s" width="%s"%s`+"\n", decimal2(x), decimal2(y), decimal2(width), body)
	return value
}

// Define adds shapes that figures refer to.
func (s *Sheet) Define(shapes template.HTML) { s.b.WriteString(string(shapes) + "\n") }

// Rule draws a horizontal line of a width in px.
func (s *Sheet) Rule(x, y, width float64) {
	fmt.Fprintf(&s.b, `<path class="rule" d="M%s %sh%s"/>`+"\n", decimal2(x), decimal2(y), decimal2(width))
}

// Box fills a rectangle in the colour of a class; all lengths are in px.
func (s *Sheet) Box(class string, x, y, width, height float64) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n",
		class, decimal2(x), decimal2(y), decimal2(width), decimal2(height))
}

// Mark draws the shape of a verdict, scaled for a font of a size in px.
func (s *Sheet) Mark(m doc.Mark, x, y, size float64) {
	class := string(m)
	if len(corners(m, 1)) == 0 {
		class = "hollow"
	}
	fmt.Fprintf(&s.b, `<path class="%s" transform="translate(%s %s) scale(%s)" d="%s"/>`+"\n",
		class, decimal2(x), decimal2(y), decimal2(size/14), shape(Interval{Mark: m, Primary: true}))
}

// Legend writes labels with their lines or squares, in as many lines as they need.
func (s *Sheet) Legend(labels []doc.Label, f Font) {
	if len(labels) == 0 {
		return
	}
	x := Edge
	for _, l := range labels {
		name := f.Fit(prose.Plain(l.Name), s.Inner()-44)
		if x > Edge && x+38+f.Width(name) > s.Width-Edge {
			x, s.Y = Edge, s.Y+f.Size*1.5
		}
		middle := s.Y + f.Size*0.7
		switch {
		case l.Bars:
			s.Box("fill"+strconv.Itoa(l.Style), x, middle-6, 12, 12)
			x += 18
		case l.Style > 0:
			fmt.Fprintf(&s.b, `<path class="key series%d" d="M%s %sh30"/>`+"\n", l.Style, decimal2(x), decimal2(middle))
			x += 38
		}
		s.Text(name, x, s.Y+f.Size, Start, f, s.Inner())
		x += f.Width(name) + 22
	}
	s.Y += f.Size * 1.6
}

// Verdicts writes the legend of the marks, and of the band of changes too small to matter; delta is a fraction.
func (s *Sheet) Verdicts(delta float64, f Font) {
	x := Edge + 6
	for _, m := range marks {
		text := map[doc.Mark]string{doc.Better: "better", doc.Worse: "worse", doc.Same: "equivalent",
			doc.Undecided: "undecided"}[m]
		s.Mark(m, x, s.Y+f.Size*0.65, f.Size)
		s.Text(text, x+12, s.Y+f.Size, Start, f, s.Inner())
		x += 12 + f.Width(text) + 24
	}
	if delta > 0 {
		s.Box("delta", x-6, s.Y, 16, f.Size*1.2)
		s.Text(fmt.Sprintf("within ±%.3g\u00a0%%: too small to matter", delta*100), x+16, s.Y+f.Size, Start,
			f, s.Width-Edge-x-16)
	}
	s.Y += f.Size * 1.7
}

// File returns the sheet as an SVG file of a height in px; 0: as high as its content.
func (s *Sheet) File(height float64) string {
	if height == 0 {
		height = s.Y + Edge - 8
	}
	text := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" `+
		`role="img" aria-labelledby="title"><title id="title">%[3]s</title>`+"\n<style>\n%[4]s</style>\n"+
		`<rect class="paper" width="%[1]s" height="%[2]s"/>`+"\n%[5]s</svg>\n",
		decimal2(s.Width), decimal2(height), html.EscapeString(s.title), plainStyle(), s.b.String())
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0xfffe || r == 0xffff {
			return '\uFFFD' // characters that XML does not allow, but imported names may contain
		}
		return r
	}, text)
}
