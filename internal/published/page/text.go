package page

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A reader reads Markdown or plain text line by line.
type reader struct {
	*builder
	lines    []string
	at       int  // index of the current line, from 0
	inCode   bool // within a block of code
	outputs  []output
	headings []string // above the current line, by level from 1
	items    []item   // list items above the current line
	caption  string   // of the current block of code or of keys

	firstHeading     string
	heading          string // last heading
	configurations   bool   // the last heading is about configurations
	target, baseline string // of the current block of keys; without a comparison baseline is empty
	blockLine        int    // line of the heading of the current block of keys, from 1; 0: none
	blockCounted     bool   // the block is counted as a table
}

func (b *builder) readText(lines []string) {
	r := &reader{builder: b, lines: lines}
	for i, line := range r.lines {
		r.observe(line)
		cells, _ := splitPipes(r.line(i))
		if _, figures := figuresAtEnd(r.line(i)); len(cells) < 2 {
			cells = figures
		}
		for _, c := range cells {
			if len(cells) > 1 {
				r.style.observe(c)
			}
		}
	}
	if !r.code {
		r.readOutputs(0, len(r.lines)) // the whole text may be such output
	}
	for r.at < len(r.lines) {
		r.at += max(r.readNext(), 1)
	}
	r.addOutputs()
}

// observe finds statements about all numbers of the text in a line: runs, concurrency, unit.
func (r *reader) observe(line string) {
	r.code = r.code || isFence(line)
	if found := runsWords.FindStringSubmatch(line); found != nil && r.runs == "" {
		r.runs = cmp.Or(found[1], found[2])
	}
	if found := workersWords.FindStringSubmatch(line); found != nil && r.workers == "" {
		r.workers = found[1]
	}
	if found := unitWords.FindStringSubmatch(line); found != nil && r.baseUnit == "" {
		r.baseUnit = strings.ToLower(found[1])
	}
}

var (
	runsWords = regexp.MustCompile(`(?i)` +
		`(?:based on|average of|averages of|mean of|means of|median of|repeated)` +
		`\s+(\d{1,6})\s+(?:runs|times|iterations|repetitions|measurements)|重复\s*(\d{1,6})\s*次`)
	workersWords = regexp.MustCompile(`(?i)\b(\d{1,7})\s+(?:workers|concurrent (?:requests|clients|users|connections))\b`)
	unitWords    = regexp.MustCompile(`(?i)\bnumbers are in (\w+)`)
)

// line returns a line, from 0, without trailing space; empty if it does not exist.
func (r *reader) line(i int) string {
	if i < 0 || i >= len(r.lines) {
		return ""
	}
	return strings.TrimRight(r.lines[i], " \t\r")
}

// number returns the number in the file of a line, from 0.
func (r *reader) number(i int) int {
	if r.numbers == nil {
		return i + 1
	}
	return r.numbers[min(i, len(r.numbers)-1)]
}

// readNext reads what begins at the current line, and returns its number of lines.
func (r *reader) readNext() int {
	text := r.line(r.at)
	trimmed := strings.TrimSpace(text)
	switch {
	case isFence(trimmed):
		if r.inCode = !r.inCode; r.inCode {
			r.caption = r.title()
			return 1 + r.readConsole()
		}
		r.caption = ""
		return 1
	case trimmed == "":
		return 1
	}
	for _, read := range []func() int{r.readPipeTable, r.readVegeta, r.readKeys, r.readPlainTable} {
		if n := read(); n > 0 {
			return n
		}
	}
	if r.inCode {
		return 1
	}
	switch {
	case strings.HasPrefix(trimmed, "#"):
		text := strings.TrimLeft(trimmed, "#")
		r.newHeading(len(trimmed)-len(text), strings.TrimSpace(text))
	case r.configurations && listItem(text) != "":
		return r.readList()
	default:
		r.readItem(text)
	}
	return 1
}

func (r *reader) newHeading(level int, text string) {
	r.heading, r.target, r.baseline, r.blockLine, r.items = text, "", "", 0, nil
	r.firstHeading = cmp.Or(r.firstHeading, text)
	headings := slices.Clone(r.headings[:min(level-1, len(r.headings))])
	for len(headings) < level-1 {
		headings = append(headings, "")
	}
	r.headings = append(headings, text)
	low := strings.ToLower(text)
	r.configurations = containsAny(low, "configurations", "variants", "类型", "模式") || strings.HasSuffix(low, " types")
}

// readPipeTable reads a table with pipes: a header, a line of dashes, and rows. It may have pipes at both ends, as most
// of Markdown, or none, and lines between its rows, as programs draw them. It returns its number of lines; 0 if there
// is no such table.
func (r *reader) readPipeTable() int {
	header, outer := splitPipes(r.line(r.at))
	if len(header) < 2 || isBorder(r.line(r.at)) {
		return 0
	}
	lines := r.headerLines(header)
	if separator, _ := splitPipes(r.line(r.at + lines)); !isSeparator(separator) && !isBorder(r.line(r.at+lines)) {
		return 0
	}
	g := grid{line: r.number(r.at), title: r.title(), heading: r.heading, header: header}
	n := lines + 1
	for ; r.at+n < len(r.lines); n++ {
		if isBorder(r.line(r.at + n)) {
			continue
		}
		cells, rowOuter := splitPipes(r.line(r.at + n))
		if len(cells) < 2 || outer && !rowOuter {
			break
		}
		if len(cells) > len(header) {
			r.warn(r.number(r.at+n), "the row has %d cells, its header %d", len(cells), len(header))
			cells = cells[:len(header)]
		}
		g.rows = append(g.rows, gridRow{r.number(r.at + n), cells})
	}
	if len(g.rows) == 0 {
		return 0
	}
	r.section = sectionOf(r.headingsAbove(cmp.Or(g.title, r.caption)))
	r.readGrid(g)
	return n
}

// maxHeaderLines is the number of lines that a header between two borders may have.
const maxHeaderLines = 4

// headerLines returns the number of lines of the header that begins at the current line. One below a border may have
// several up to the next border; their cells are joined in header.
func (r *reader) headerLines(header []string) int {
	if !isBorder(r.line(r.at - 1)) {
		return 1
	}
	joined := slices.Clone(header)
	for n := 1; n <= maxHeaderLines; n++ {
		if isBorder(r.line(r.at + n)) {
			copy(header, joined)
			return n
		}
		cells, _ := splitPipes(r.line(r.at + n))
		if len(cells) != len(header) {
			break
		}
		for i, c := range cells {
			joined[i] = strings.TrimSpace(joined[i] + " " + c)
		}
	}
	return 1
}

// title returns the last line with text within the three above the current one; empty if it is a row of a table.
func (r *reader) title() string {
	for i := r.at - 1; i >= max(0, r.at-3); i-- {
		text := strings.TrimSpace(r.line(i))
		if text == "" || isBorder(text) {
			continue
		}
		if isFence(text) {
			return ""
		}
		if cells, _ := splitPipes(text); len(cells) > 1 {
			return ""
		}
		return strings.TrimLeft(text, "-*# ")
	}
	return ""
}

// pipes replaces the vertical lines that programs draw by pipes.
var pipes = strings.NewReplacer("│", "|", "┃", "|", "║", "|")

// splitPipes returns the cells of a line with pipes, and whether it begins with one; no cells for a line without pipes.
func splitPipes(line string) (cells []string, outer bool) {
	text := pipes.Replace(strings.TrimSpace(line))
	if !strings.Contains(text, "|") {
		return nil, false
	}
	outer = strings.HasPrefix(text, "|")
	text = strings.ReplaceAll(text, `\|`, "\x00")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "|"), "|")
	cells = strings.Split(text, "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
	}
	return cells, outer
}

// isSeparator reports whether cells are those of the line between header and rows.
func isSeparator(cells []string) bool {
	return len(cells) > 0 && !slices.ContainsFunc(cells, func(c string) bool { return !dashes.MatchString(c) })
}

var dashes = regexp.MustCompile(`^[-:]*-[-:]*$`)

// rule matches a part of a horizontal line.
var rule = regexp.MustCompile(`---|===|[─━═]`)

// isBorder reports whether a line is a horizontal line that a program draws around a table or between its rows.
func isBorder(line string) bool {
	text := strings.TrimSpace(line)
	for _, r := range text {
		if !strings.ContainsRune("+-=| ", r) && (r < '\u2500' || r > '\u257f') {
			return false
		}
	}
	return utf8.RuneCountInString(text) > 2 && rule.MatchString(text)
}

// readPlainTable reads a table without marks: a header, and two or more lines with a label and the same number of
// figures, two at least. It returns its number of lines; 0 if there is no such table.
func (r *reader) readPlainTable() int {
	label, cells := figuresAtEnd(r.line(r.at + 1))
	if len(cells) < 2 || label == "" {
		return 0
	}
	if _, own := figuresAtEnd(r.line(r.at)); len(own) > 1 {
		return 0
	}
	header, ok := headerOf(r.line(r.at), len(cells))
	if !ok {
		return 0
	}
	g := grid{line: r.number(r.at), heading: r.heading, header: header}
	n := 1
	for ; ; n++ {
		label, row := figuresAtEnd(r.line(r.at + n))
		if label == "" || len(row) != len(cells) {
			break
		}
		g.rows = append(g.rows, gridRow{r.number(r.at + n), append([]string{label}, row...)})
	}
	if len(g.rows) < 2 { // a sentence that ends in two numbers
		return 0
	}
	r.section = sectionOf(r.headingsAbove(r.caption))
	r.readGrid(g)
	return n
}

// spacedSlash matches the slash in "124/ 8072", which is one cell.
var spacedSlash = regexp.MustCompile(`(\d)\s*/\s+(\d)`)

// endFigure matches a cell of a plain table.
var endFigure = regexp.MustCompile(`^[+-]?\d[\d.,]*(?:/[+-]?\d[\d.,]*)*%?$`)

// figuresAtEnd splits a line into a label and the figures that follow it.
func figuresAtEnd(line string) (label string, cells []string) {
	words := strings.Fields(spacedSlash.ReplaceAllString(line, "$1/$2"))
	i := len(words)
	for i > 0 && endFigure.MatchString(words[i-1]) {
		i--
	}
	return strings.Join(words[:i], " "), words[i:]
}

// headerOf splits the header of a plain table into a label and n names: at tabs or repeated spaces if there are any,
// else by the number of columns and the words that repeat.
func headerOf(line string, n int) ([]string, bool) {
	if text := strings.TrimSpace(line); text == "" || utf8.RuneCountInString(text) > 400 {
		return nil, false
	}
	var wide []string
	for _, name := range wideGap.Split(strings.TrimSpace(line), -1) {
		if name = strings.TrimSpace(name); name != "" {
			wide = append(wide, name)
		}
	}
	switch len(wide) {
	case n + 1:
		return wide, true
	case n:
		return append([]string{""}, wide...), true
	}
	words := strings.Fields(line)
	first := ""
	if len(words) > n && slices.Contains(labelWords, strings.ToLower(words[0])) {
		first, words = words[0], words[1:]
	}
	names := partition(words, n)
	return append([]string{first}, names...), names != nil
}

var wideGap = regexp.MustCompile(`\t+| {2,}`)

// labelWords are headers of the column of labels.
var labelWords = []string{"test", "tests", "case", "metric", "benchmark", "scenario", "name", "workload", "path",
	"测试用例", "用例"}

// maxHeaderWords limits the time that partition takes.
const maxHeaderWords = 64

// partition splits words into n names so that neighbours have the most in common: compared things often share the first
// or last words of their names. It returns nil if there are too few or too many words, or if no names share a word.
func partition(words []string, n int) []string {
	if len(words) < n || len(words) > maxHeaderWords || n < 1 {
		return nil
	}
	if len(words) == n {
		return slices.Clone(words)
	}
	// A split of words[:to] into k names. The last of them is words[from:to].
	type split struct {
		score, from, to int
		before          *split // names before the last
	}
	best := map[[3]int]*split{} // by k, from and to
	longest := len(words) - n + 1
	for to := 1; to <= longest; to++ {
		if canBeName(words, 0, to) {
			best[[3]int{1, 0, to}] = &split{to: to}
		}
	}
	for k := 2; k <= n; k++ {
		for from := k - 1; from < len(words); from++ {
			for start := max(0, from-longest); start < from; start++ {
				before := best[[3]int{k - 1, start, from}]
				for to := from + 1; before != nil && to <= min(len(words), from+longest); to++ {
					key, score := [3]int{k, from, to}, before.score+similarity(words[start:from], words[from:to])
					if have := best[key]; canBeName(words, from, to) && (have == nil || score > have.score) {
						best[key] = &split{score, from, to, before}
					}
				}
			}
		}
	}
	found := &split{}
	for from := len(words) - 1; from >= 0; from-- {
		if s := best[[3]int{n, from, len(words)}]; s != nil && s.score > found.score {
			found = s
		}
	}
	var names []string
	for s := found; s != nil && found.score > 0; s = s.before {
		names = append(names, strings.Join(words[s.from:s.to], " "))
	}
	slices.Reverse(names)
	return names
}

// canBeName reports whether words[from:to] can be a name: it does not begin with a digit or bracket, and no joining
// sign such as + is at either end or after it.
func canBeName(words []string, from, to int) bool {
	joins := func(w string) bool { return strings.Contains("+&-–/", w) }
	if to < len(words) && (joins(words[to]) || joins(words[to-1])) {
		return false
	}
	return !joins(words[from]) && !strings.ContainsAny(words[from][:1], "0123456789(")
}

// similarity scores the shared words of two neighbouring names: 3 for each first word, 2 for each last one.
func similarity(a, b []string) int {
	start, end := 0, 0
	for start < min(len(a), len(b)) && strings.EqualFold(a[start], b[start]) {
		start++
	}
	for end < min(len(a), len(b))-start && strings.EqualFold(a[len(a)-1-end], b[len(b)-1-end]) {
		end++
	}
	return 3*start + 2*end
}
