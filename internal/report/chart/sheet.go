package chart

import (
	_ "embed" // the style sheets
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"
)

var (
	//go:embed colours.css
	colours string
	//go:embed figure.css
	figureStyle string
	//go:embed sheet.css
	sheetStyle string
)

// Style is the style sheet of figures in a page, with its colours in light and dark.
func Style() string { return colours + figureStyle }

// colour is one of the colours in daylight, the first that the style sheet has, and variable a use of it.
var (
	colour   = regexp.MustCompile(`--([a-z0-9]+): ([^;]+);`)
	variable = regexp.MustCompile(`var\(--([a-z0-9]+)\)`)
	note     = regexp.MustCompile(`(?s)/\*.*?\*/\n?`)
)

// plainStyle is the style sheet of a file. It has the colours of daylight in their places, for a file may come onto any
// ground, and viewers other than browsers know no variables.
func plainStyle() string {
	values := map[string]string{}
	for _, c := range colour.FindAllStringSubmatch(colours, -1) {
		if _, known := values[c[1]]; !known {
			values[c[1]] = c[2]
		}
	}
	return variable.ReplaceAllStringFunc(note.ReplaceAllString(figureStyle+sheetStyle, ""), func(use string) string {
		return values[variable.FindStringSubmatch(use)[1]]
	})
}

// A Sheet is a figure that needs no page: an SVG with its style and its texts, whose letters are those that systems
// have. Texts are as wide as they are at most, so they neither overlap nor reach over the edge.
type Sheet struct {
	Width float64 // px
	Y     float64 // px, where what comes next stands
	title string
	b     strings.Builder
}

// Edge is what is left empty at each side, px.
const Edge = 28.0

// NewSheet begins a sheet. The title is said by screen readers.
func NewSheet(width float64, title string) *Sheet {
	return &Sheet{Width: width, Y: Edge - 6, title: title}
}

// Inner is the width between the edges, px.
func (s *Sheet) Inner() float64 { return s.Width - 2*Edge }

// An Anchor is the point of a text that its x is about.
type Anchor string

// The anchors.
const (
	Start  Anchor = "start"
	Middle Anchor = "middle"
	End    Anchor = "end"
)

// Text writes a line with its base line at y, cut to a width.
func (s *Sheet) Text(text string, x, y float64, anchor Anchor, l Letters, width float64) {
	weight := ""
	if l.Bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(&s.b, `<text class="%s" x="%s" y="%s" font-size="%s" text-anchor="%s"%s>%s</text>`+"\n", l.Class,
		num(x), num(y), num(l.Size), anchor, weight, html.EscapeString(l.Fit(text, width)))
}

// Lines writes lines of a text below each other from y on, and returns where they end.
func (s *Sheet) Lines(text string, x, y float64, anchor Anchor, l Letters, width float64, most int) float64 {
	for _, line := range l.Lines(text, width, most) {
		s.Text(line, x, y+l.Size, anchor, l, width)
		y += l.Size * 1.3
	}
	return y
}

// Paragraph writes a text over the whole width.
func (s *Sheet) Paragraph(text string, l Letters) {
	s.Y = s.Lines(text, Edge, s.Y, Start, l, s.Inner(), 12)
}

// Place puts a figure of a page at a place, and returns its height.
func (s *Sheet) Place(figure template.HTML, x, y, width float64) float64 {
	_, rest, _ := strings.Cut(string(figure), `height="`)
	height, _, _ := strings.Cut(rest, `"`)
	value, _ := strconv.ParseFloat(height, 64) // what we wrote ourselves
	body, _ := strings.CutPrefix(string(figure), "<svg")
	fmt.Fprintf(&s.b, `<svg x="%s" y="%s" width="%s"%s`+"\n", num(x), num(y), num(width), body)
	return value
}

// Define puts in what figures refer to.
func (s *Sheet) Define(shapes template.HTML) { s.b.WriteString(string(shapes) + "\n") }

// Rule draws a line over a width.
func (s *Sheet) Rule(x, y, width float64) {
	fmt.Fprintf(&s.b, `<path class="rule" d="M%s %sh%s"/>`+"\n", num(x), num(y), num(width))
}

// Box fills a rectangle in the colour of a class.
func (s *Sheet) Box(class string, x, y, width, height float64) {
	fmt.Fprintf(&s.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n",
		class, num(x), num(y), num(width), num(height))
}

// Mark draws the shape of a verdict, for letters of a size.
func (s *Sheet) Mark(m Mark, x, y, size float64) {
	class := string(m)
	if len(m.Corners(1)) == 0 {
		class = "hollow"
	}
	fmt.Fprintf(&s.b, `<path class="%s" transform="translate(%s %s) scale(%s)" d="%s"/>`+"\n", class, num(x), num(y),
		num(size/14), shape(Interval{Mark: m, Primary: true}))
}

// An Entry is one of a legend: a line in the style of a target, or its bars.
type Entry struct {
	Name string
	Rank int
	Bars bool
}

// Legend writes keys in as many lines as they take.
func (s *Sheet) Legend(keys []Entry, l Letters) {
	x := Edge
	for _, k := range keys {
		name := l.Fit(k.Name, s.Inner()-44)
		if x > Edge && x+38+l.Width(name) > s.Width-Edge {
			x, s.Y = Edge, s.Y+l.Size*1.5
		}
		middle := s.Y + l.Size*0.7
		if k.Bars {
			s.Box("fill"+strconv.Itoa(Series(k.Rank)), x, middle-6, 12, 12)
			x += 18
		} else {
			fmt.Fprintf(&s.b, `<path class="key series%d" d="M%s %sh30"/>`+"\n", Series(k.Rank), num(x), num(middle))
			x += 38
		}
		s.Text(name, x, s.Y+l.Size, Start, l, s.Inner())
		x += l.Width(name) + 22
	}
	s.Y += l.Size * 1.6
}

// Verdicts writes what the marks mean, and the band of what is too small to matter.
func (s *Sheet) Verdicts(delta float64, l Letters) {
	x := Edge + 6
	for _, m := range marks {
		text := map[Mark]string{Better: "better", Worse: "worse", Same: "equivalent", Undecided: "undecided"}[m]
		s.Mark(m, x, s.Y+l.Size*0.65, l.Size)
		s.Text(text, x+12, s.Y+l.Size, Start, l, s.Inner())
		x += 12 + l.Width(text) + 24
	}
	if delta > 0 {
		s.Box("delta", x-6, s.Y, 16, l.Size*1.2)
		s.Text(fmt.Sprintf("within ±%.3g\u00a0%%: too small to matter", delta*100), x+16, s.Y+l.Size, Start,
			l, s.Width-Edge-x-16)
	}
	s.Y += l.Size * 1.7
}

// File is the sheet as an SVG file of a height in pixels; 0: as high as what is on it.
func (s *Sheet) File(height float64) string {
	if height == 0 {
		height = s.Y + Edge - 8
	}
	text := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" `+
		`role="img" aria-labelledby="title"><title id="title">%[3]s</title>`+"\n<style>\n%[4]s</style>\n"+
		`<rect class="paper" width="%[1]s" height="%[2]s"/>`+"\n%[5]s</svg>\n",
		num(s.Width), num(height), html.EscapeString(s.title), plainStyle(), s.b.String())
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0xfffe || r == 0xffff {
			return '\uFFFD' // letters that XML cannot have, as titles from elsewhere may
		}
		return r
	}, text)
}
