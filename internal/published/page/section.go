package page

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// A section is the part of a text below its headings, with what they say about all its figures.
type section struct {
	name string // empty: the text has no headings
	runs string // number of runs behind each result; empty: not given
}

// sectionOf returns the section below headings, which may be empty. Headings that only name a tool or number runs begin
// no section: what is below them measures the same thing.
func sectionOf(headings []string) section {
	var s section
	var names []string
	for _, h := range headings {
		if name := strings.Join(strings.Fields(toolWords.ReplaceAllString(h, " ")), " "); !isRepetition(h) && name != "" {
			names = append(names, strings.ToLower(name))
		}
		if found := headingRuns.FindStringSubmatch(h); found != nil {
			s.runs = found[1]
		}
	}
	s.name = strings.Join(names, " > ")
	return s
}

var (
	// toolWords matches the name of a tool in a heading, and the words and punctuation around it.
	toolWords = regexp.MustCompile(
		`(?i)(?:\b(?:with|using|by|via|results? of|output of)\s+)?\b(?:iperf[23]?|netperf|qperf|sockperf|nuttcp|fio)\b` +
			`(?:\s+(?:results?|tests?|output))?|[:*_` + "`" + `]`)
	headingRuns = regexp.MustCompile(`(?i)\b(\d{1,6}) (?:runs|repetitions|iterations)\b`)
)

// levels of headings: those of Markdown, then list items by their nesting, then the caption of a block or table, and a
// caption within a block.
const (
	headingLevels = 6
	itemLevels    = 3
	captionLevel  = headingLevels + itemLevels + 1
	allLevels     = captionLevel + 1
)

// headingsAbove returns the headings above the current line by level, with a caption.
func (r *reader) headingsAbove(caption string) []string {
	all := make([]string, allLevels)
	for i, h := range r.headings[:min(headingLevels, len(r.headings))] {
		all[i] = heading(h)
	}
	line := r.line(r.at)
	for i, item := range r.items[:min(itemLevels, len(r.items))] {
		if item.begins || indentOf(line) > item.indent {
			all[headingLevels+i] = item.text
		}
	}
	if caption = heading(caption); !slices.Contains(all, caption) {
		all[captionLevel-1] = caption
	}
	return all
}

// heading returns the text of a heading, a list item or a caption without marks.
func heading(text string) string {
	return strings.TrimSpace(strings.TrimRight(clean(strings.Trim(text, "#*_ ")), ":"))
}

// An item is a list item above the current line.
type item struct {
	indent int
	text   string
	begins bool // with a colon at its end, which what follows belongs to
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

var numberedItem = regexp.MustCompile(`^\s*\d{1,2}[.)]\s+(\S.*)$`)

// readItem keeps a list item as a heading of what is below it, until the next one of its indentation or the end of the
// list: a paragraph that is not indented.
func (r *reader) readItem(text string) {
	name, indent := listItem(text), indentOf(text)
	if found := numberedItem.FindStringSubmatch(text); found != nil {
		name = found[1]
	}
	switch {
	case name != "":
		r.items = slices.DeleteFunc(r.items, func(i item) bool { return i.indent >= indent })
		r.items = append(r.items, item{indent, heading(name), strings.HasSuffix(strings.TrimRight(name, "*_ "), ":")})
	case indent == 0 && r.line(r.at-1) == "":
		r.items = nil
	}
}

// blockCaption matches a line within a block of output that separates one test from the next, such as
// "=== Same node ===".
var blockCaption = regexp.MustCompile(`^\s*(?:={2,}|-{2,}|\*{2,}|#{2,}|>{2,})\s*([^-=*#>\s].*?)[\s=*#>-]*$`)

// captionBefore returns the nearest line above a line of a block, from 0, that separates tests. A comment does too
// if it names the nodes.
func (r *reader) captionBefore(line, begin int) string {
	for i := line; i > begin; i-- {
		text := r.line(i)
		if found := blockCaption.FindStringSubmatch(text); found != nil && strings.ContainsFunc(found[1], unicode.IsLetter) {
			return found[1]
		}
		if comment, is := strings.CutPrefix(strings.TrimSpace(text), "#"); is && whereOf(comment) != "" {
			return comment
		}
	}
	return ""
}

// whereOf returns which nodes a text names: /same, /other, or empty.
func whereOf(text string) string {
	where, _ := cutNodeWords(strings.ToLower(clean(text)))
	return where
}

// isRepetition reports whether a heading numbers runs of the same test.
func isRepetition(heading string) bool { return repetition.MatchString(heading) }

var repetition = regexp.MustCompile(`(?i)^(?:run|test run|repetition|iteration|round|attempt)\b`)

// repetitionColumn matches the header of a column with one run of each row, aggregateColumn one with a summary of them.
var (
	repetitionColumn = regexp.MustCompile(`(?i)^(?:(?:test )?run|trial|repetition|iteration|round|attempt|#)\s*#?\d+$`)
	aggregateColumn  = regexp.MustCompile(`(?i)^(?:average|avg\.?|mean|median|min(?:imum)?|max(?:imum)?)$`)
)

// repetitions returns the number of columns with figures that are runs of the same tests; 0 if there are others than
// these and their summaries.
func repetitions(figures []int, columns []label) (n int) {
	for _, i := range figures {
		switch name := columns[i].name; {
		case repetitionColumn.MatchString(name):
			n++
		case !aggregateColumn.MatchString(name):
			return 0
		}
	}
	if n < 2 {
		return 0
	}
	return n
}

// meshWord matches the name of a mesh that takes over the connections of a target.
var (
	meshWord = regexp.MustCompile(`(?i)\b(?:istio|ztunnel|linkerd|hbone|kuma|consul connect)\b`)
	// otherwise matches words with which a name is not that of a configuration with a mesh.
	otherwise = regexp.MustCompile(`(?i)\b(?:no|non|without|w/o|before|disabled|off|vs\.?|versus|compar\w*|or)\b`)
)
