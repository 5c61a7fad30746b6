package page

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/knotmeter/knotmeter/internal/unit"
)

var (
	// halfWidths replaces full-width brackets and punctuation, and the spaces and minus signs of typesetting.
	halfWidths = strings.NewReplacer("（", "(", "）", ")", "【", "[",
		"】", "]", "，", ",", "：", ":", "／", "/", "％", "%", "\u00a0", " ", "\u2009", " ", "\u202f", " ", "\u2007", " ",
		"−", "-")
	withoutMarks = strings.NewReplacer("`", "", "**", "", "__", "", "~~", "", "<br>", " ", "<br/>", " ")
	// footnote matches the mark of a footnote, in Markdown or HTML.
	footnote = regexp.MustCompile(`\[\^[^\]]*\]|<sup>.*?</sup>`)
	htmlTag  = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)
	// link matches a link or an image of Markdown; its text is the first group.
	link = regexp.MustCompile(`!?\[([^\[\]]*)\]\([^()\s]*\)`)
)

// clean returns a label without marks of Markdown and HTML, full-width punctuation and repeated spaces.
func clean(text string) string {
	text = withoutMarks.Replace(halfWidths.Replace(footnote.ReplaceAllString(text, "")))
	text = htmlTag.ReplaceAllString(link.ReplaceAllString(text, "$1"), " ")
	return strings.Join(strings.Fields(text), " ")
}

// A figure is a number in a cell, with its unit and standard deviation if the cell has them.
type figure struct {
	number, sd float64
	digit      float64 // value of one unit in the last digit; 0: unknown
	scaledUnit         // zero: none in the cell
	iops       bool    // the unit is that of storage operations
	signed     bool    // the number has a sign
	suffix     bool    // the number has a suffix such as k instead of a unit
	factor     bool    // the figure is a factor such as 1.6x
	share      string  // share or change in brackets behind the figure; empty: none
}

// A scaledUnit is a base unit, and the factor to it.
type scaledUnit struct {
	unit  unit.Unit
	scale float64
}

// isChange reports whether the figure can only be a change: a factor, or a percentage with a sign.
func (f figure) isChange() bool { return f.factor || f.signed && f.unit == unit.Ratio }

// noFigure is the reason for a cell without a number.
const noFigure = "no figure"

// maxFigures is the number of figures that a cell may have.
const maxFigures = 4

// between matches the signs between two figures of a cell, and the first digit after them.
var between = regexp.MustCompile(`(?:\s*[/|;]\s*|,\s+)[~≈+-]?\d`)

// parseCell parses the figures of a cell: one, or several between slashes. A unit after the last figure is that of all.
// The reason for a cell that has no figures, or cannot be read, is a phrase.
func (s *style) parseCell(text string) (figures []figure, reason string) {
	text = strings.TrimFunc(clean(text), decoration)
	if !strings.ContainsFunc(text, unicode.IsDigit) {
		return nil, noFigure
	}
	f, reason := s.parseFigure(text)
	if reason == "" {
		return []figure{f}, ""
	}
	pieces := splitFigures(text)
	if len(pieces) < 2 || len(pieces) > maxFigures {
		return nil, reason
	}
	for _, piece := range pieces {
		f, reason := s.parseFigure(strings.TrimSpace(piece))
		if reason != "" {
			return nil, fmt.Sprintf("several figures, and %q is not one: %s", short(piece), reason)
		}
		figures = append(figures, f)
	}
	last := figures[len(figures)-1]
	for i, f := range figures {
		if f.unit == "" && !f.suffix && !f.factor {
			figures[i].scaledUnit, figures[i].iops = last.scaledUnit, last.iops
		}
	}
	return figures, ""
}

// splitFigures splits a cell between its figures. A slash of a unit, as in Gbit/s, is not between figures.
func splitFigures(text string) []string {
	var pieces []string
	for {
		at := between.FindStringIndex(text)
		if at == nil {
			return append(pieces, text)
		}
		pieces = append(pieces, text[:at[0]])
		text = strings.TrimLeft(text[at[0]:], "/|;, ")
	}
}

// decoration reports whether a character at either end of a cell only decorates it: marks of footnotes, arrows, emoji.
func decoration(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("*_†‡§¹²³⁴↑↓→✓", r) ||
		unicode.Is(unicode.So, r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Sk, r) || unicode.Is(unicode.Cf, r)
}

var (
	// about matches a word or sign that calls a number approximate.
	about = regexp.MustCompile(`(?i)^(?:[~≈∼]|about|approx\.?|ca\.)\s*`)
	// numberWord matches a number, also with spaces or apostrophes between thousands.
	numberWord = regexp.MustCompile(`^[+-]?(?:\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?|\d[\d.,]*|\.\d+)(?:[eE][+-]?\d+)?`)
	// share matches a share of another figure, or a change from it, behind a figure.
	share      = regexp.MustCompile(`\s*\([+-]?[\d.,]+\s*[%x×]\)$`)
	bound      = regexp.MustCompile(`^[<>≤≥]`)
	spreadWord = regexp.MustCompile(`\s*(?:±|\+/-|\+-)\s*`)
	rangeWord  = regexp.MustCompile(`^[^\s\d]*\s*(?:-|–|—|to|\.\.\.?|…|bis)\s*\d`)
)

// parseFigure parses a number with its spread and unit. If there is none, the reason is a phrase.
func (s *style) parseFigure(text string) (f figure, reason string) {
	if bound.MatchString(text) {
		return f, "a bound, not a figure"
	}
	text = about.ReplaceAllString(text, "")
	f.factor = strings.HasPrefix(text, "×")
	text = strings.TrimPrefix(text, "×")
	word := numberWord.FindString(text)
	number, digit, ok := s.number(word)
	if !ok {
		return f, noFigure
	}
	f.number, f.digit, f.signed = number, digit, word[0] == '+' || word[0] == '-'
	rest := text[len(word):]
	if at := share.FindStringIndex(rest); at != nil {
		rest, f.share = rest[:at[0]], strings.TrimSpace(rest[at[0]:])
	}
	if rangeWord.MatchString(rest) {
		return f, "a range"
	}
	name := rest
	if at := spreadWord.FindStringIndex(rest); at != nil {
		spread := rest[at[1]:]
		name = rest[:at[0]]
		word := numberWord.FindString(spread)
		if f.sd, _, ok = s.number(word); !ok {
			return f, noFigure
		}
		after := strings.TrimSpace(spread[len(word):])
		switch {
		case after == "%" && strings.TrimSpace(name) != "%":
			f.sd *= math.Abs(f.number) / 100
		case strings.TrimSpace(name) == "":
			name = after
		case after != strings.TrimSpace(name):
			return f, "the figure and its spread have different units"
		}
	}
	return f, f.parseUnit(strings.TrimSpace(name))
}

// suffixes are the suffixes of numbers.
var suffixes = map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "mio": 1e6, "万": 1e4}

// parseUnit takes the text after a number: a unit, a suffix, or both. If it is none of them, the reason is a phrase.
func (f *figure) parseUnit(name string) (reason string) {
	if inner, ok := strings.CutPrefix(name, "("); ok && strings.HasSuffix(inner, ")") {
		name = strings.TrimSuffix(inner, ")")
		if strings.ContainsAny(name, "0123456789") {
			return "two figures"
		}
	}
	if name == "" {
		return ""
	}
	if name == "x" || name == "×" || name == "X" {
		f.factor = true
		return ""
	}
	if strings.HasPrefix(name, "x ") || strings.HasPrefix(name, "× ") {
		return "a change in words"
	}
	f.iops = strings.Contains(strings.ToLower(name), "iops")
	var ok bool
	if f.scaledUnit, ok = unitOf(name); ok {
		return ""
	}
	prefix, rest, _ := strings.Cut(name, " ")
	scale, known := suffixes[prefix]
	if !known {
		return fmt.Sprintf("%q is no known unit", short(name))
	}
	f.number, f.sd, f.digit = f.number*scale, f.sd*scale, f.digit*scale
	if rest == "" {
		f.suffix = true
		return ""
	}
	if f.scaledUnit, ok = unitOf(rest); !ok || f.scale != 1 {
		return fmt.Sprintf("%q is no known unit", short(name))
	}
	return ""
}

var (
	perSecond = regexp.MustCompile(`(?i)\s*(?:/\s*sec(?:ond)?s?\.?| per sec(?:ond)?| p/s)$`)
	// lowerRate matches a rate of bits with a prefix in lower case, which is meant to be that in upper case. mb/s
	// may be bits or bytes.
	lowerRate   = regexp.MustCompile(`^[mgt](?:bps|bits?/s)$`)
	doubtedRate = regexp.MustCompile(`^[mgt]b/s$`)
	// thingsPerSecond matches a rate of what a benchmark counts, such as events/s.
	thingsPerSecond = regexp.MustCompile(`^[a-z]{3,}/s$`)
	bytesPerSecond  = regexp.MustCompile(`^[kmgt]i?b`)
)

// unitOf parses the name of a unit in its common spellings. It returns false for others, and for plain counts.
func unitOf(name string) (u scaledUnit, ok bool) {
	name = strings.TrimSpace(name)
	if name == "" || strings.ContainsAny(name[:1], "0123456789+-.") && !strings.HasPrefix(name, "10^6") {
		return u, false
	}
	name = perSecond.ReplaceAllString(name, "/s")
	low := strings.ToLower(name)
	switch low {
	case "microseconds", "microsecond", "usec", "usecs", "µsec", "μsec", "µsecs", "微秒":
		name = "us"
	case "milliseconds", "millisecond", "msec", "msecs", "毫秒":
		name = "ms"
	case "秒", "secs":
		name = "s"
	case "10^6bits/s":
		name = low
	case "op/s", "ops/s", "iops", "tps", "qps", "rps", "pps", "req/s", "reqs/s", "trans/s", "requests/s", "transactions/s",
		"txn/s":
		name = strings.Replace(strings.Replace(low, "reqs", "req", 1), "txn", "trans", 1)
	}
	switch {
	case lowerRate.MatchString(name):
		name = strings.ToUpper(name[:1]) + name[1:]
	case doubtedRate.MatchString(name):
		return u, false
	}
	if thingsPerSecond.MatchString(low) && !bytesPerSecond.MatchString(low) {
		if _, _, err := unit.Parse("1 " + name); err != nil {
			return scaledUnit{unit.PerSecond, 1}, true
		}
	}
	scale, base, err := unit.Parse("1 " + name)
	if err != nil || base == unit.Count {
		return u, false
	}
	return scaledUnit{base, scale}, true
}

// missing reports whether a cell is empty or has a placeholder for a figure.
func missing(text string) bool {
	switch strings.ToLower(strings.Trim(clean(text), "*_ ")) {
	case "", "-", "–", "—", "n/a", "na", "n.a.", "none", "null", "tbd", "?", "x", "nan", "fail", "failed", "error",
		"timeout", "无", "失败":
		return true
	}
	return false
}
