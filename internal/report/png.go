package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/prose"
	"github.com/knotmeter/knotmeter/internal/report/picture"
	"github.com/knotmeter/knotmeter/internal/result"
)

// mostDrawn is how many comparisons a picture shows: one that is longer is read by nobody, and chats
// shrink it until nobody can.
const mostDrawn = 60

// writePNG writes the forest plot of the page as a picture. Primary comparisons come first and are the last
// to be left out; how many are left out is said below.
func writePNG(w io.Writer, in Input) error {
	in = in.spoken()
	c, all := in.Comparison, groups(in)
	p := picture.Picture{Title: pictureTitle(c), Summary: prose.Plain(c.Summary),
		Against: prose.Plain(prose.Enumerate(baselines(c))), Delta: c.Delta}
	room := mostDrawn
	for _, role := range roles {
		kept, _ := partition(all, role)
		s := drawnSections[role]
		for _, g := range kept {
			drawn := drawnGroup(g, room)
			if len(drawn.Rows) == 0 {
				continue
			}
			room -= len(drawn.Rows)
			s.Groups = append(s.Groups, drawn)
		}
		if len(s.Groups) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	p.Notes = pictureNotes(in, len(c.Comparisons)-(mostDrawn-room))
	return picture.Encode(w, p)
}

// pictureTitle counts the targets where their names would be longer than two lines.
func pictureTitle(c compare.Comparison) string {
	text := prose.Plain(title(c))
	if n := len(compared(c)); n > 1 && prose.Width(text) > 120 {
		return fmt.Sprintf("%d targets against %s", n, prose.Plain(prose.Enumerate(baselines(c))))
	}
	return text
}

var drawnSections = map[result.Role]picture.Section{
	result.Primary: {Title: "Primary comparisons",
		About: "A verdict was planned for these; their intervals hold all together."},
	result.Exploratory: {Title: "Exploratory comparisons", About: "No verdict was planned for these; false " +
		"discoveries are controlled, and each interval is at its own level."},
}

// drawnGroup is a group with at most so many rows. The targets that a case has no row of are no rows:
// the picture is of what was measured.
func drawnGroup(g group, most int) picture.Group {
	drawn := picture.Group{Case: prose.Plain(g.Case),
		Metric: prose.Plain(g.Metric) + ", " + betterText(g.Better), Primary: g.Role == result.Primary}
	for _, r := range g.Rows[:min(len(g.Rows), most)] {
		drawn.Rows = append(drawn.Rows, picture.Row{Target: prose.Plain(r.Target), Change: change(r.Change),
			Range: interval(r.CI), Word: word(r), Interval: forestInterval(r, 0)})
	}
	return drawn
}

// pictureMedians are lines of what was measured, where nothing is compared.
func pictureMedians(in Input) []string {
	first, _ := split(in)
	var list []string
	for _, m := range first[:min(len(first), mostDrawn)] {
		text := fmt.Sprintf("%s on %s, %s: %s", m.Case, m.Target, m.Metric, format(m.Median, m.Unit))
		if held := around(m); held != "-" {
			text += " (" + held + ")"
		}
		list = append(list, text)
	}
	if n := len(first) - len(list); n > 0 {
		list = append(list, fmt.Sprintf("%d more medians are in the report and its JSON.", n))
	}
	return list
}

func pictureNotes(in Input, hidden int) []string {
	c := in.Comparison
	medians := pictureMedians(in)
	list := append(sessionChanges(c), medians...)
	if len(c.Comparisons) == 0 && len(medians) == 0 {
		list = append(list, nothingWords)
	}
	if hidden > 0 {
		list = append(list, fmt.Sprintf("%d more comparisons are in the report and its JSON.", hidden))
	}
	for _, n := range c.NotMeasured {
		if n.Case == "*" {
			list = append(list, fmt.Sprintf("%s was not measured: %s.", n.Target, n.Reason))
		}
	}
	if !c.Paired && len(c.Comparisons) > 0 {
		list = append(list, unpairedWords)
	}
	list = append(list, c.Scope, strings.TrimSpace("Knotmeter, experiment "+c.Experiment))
	for i, s := range list {
		list[i] = prose.Plain(s)
	}
	return list
}
