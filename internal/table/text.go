package table

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A reader goes through the lines of a text and hands on what it recognises.
type reader struct {
	*builder
	lines    []string
	at       int      // the line that is looked at, from 0
	fence    bool     // within a block of code
	heading  string   // the last heading
	subject  string   // the first heading
	above    []string // the headings that the line is below, by their level from 1
	outputs  []output
	headings bool   // that heading is about configurations
	target   string // that the block of keys is about
	against  string // likewise, if it compares two
	blockAt  int    // line of the block's heading, from 1; 0: none
	counted  bool   // the block had a figure
}

func (b *builder) readText(lines []string) {
	r := &reader{builder: b, lines: lines}
	r.globals()
	for r.at < len(r.lines) {
		r.at += max(r.take(), 1)
	}
	r.addOutputs()
}

// globals finds what the text says of all its numbers, wherever it does.
func (r *reader) globals() {
	for _, line := range r.lines {
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
}

var (
	runsWords = regexp.MustCompile(`(?i)` +
		`(?:based on|average of|averages of|mean of|means of|median of|repeated)` +
		`\s+(\d{1,6})\s+(?:runs|times|iterations|repetitions|measurements)|重复\s*(\d{1,6})\s*次`)
	workersWords = regexp.MustCompile(`(?i)\b(\d{1,7})\s+(?:workers|concurrent (?:requests|clients|users|connections))\b`)
	unitWords    = regexp.MustCompile(`(?i)\bnumbers are in (\w+)`)
)

// line is a line without what a terminal or an editor leaves at its end.
func (r *reader) line(i int) string {
	if i < 0 || i >= len(r.lines) {
		return ""
	}
	return strings.TrimRight(r.lines[i], " \t\r")
}

// take reads what begins in the line, and returns how many lines that was.
func (r *reader) take() int {
	text := r.line(r.at)
	trimmed := strings.TrimSpace(text)
	switch {
	case isFence(trimmed):
		r.fence = !r.fence
		if r.fence {
			return 1 + r.console()
		}
		return 1
	case trimmed == "":
		return 1
	}
	for _, read := range []func() int{r.markdown, r.keys, r.plain} {
		if n := read(); n > 0 {
			return n
		}
	}
	if r.fence {
		return 1
	}
	switch {
	case strings.HasPrefix(trimmed, "#"):
		text := strings.TrimLeft(trimmed, "#")
		r.newHeading(len(trimmed)-len(text), strings.TrimSpace(text))
	case r.headings && bullet(text) != "":
		return r.list()
	case strings.HasPrefix(trimmed, "![") || strings.HasPrefix(trimmed, "<"):
	default:
		r.prose(r.at + 1)
	}
	return 1
}

func (r *reader) newHeading(level int, text string) {
	r.heading, r.target, r.against, r.blockAt = text, "", "", 0
	r.subject = cmp.Or(r.subject, text)
	above := slices.Clone(r.above[:min(level-1, len(r.above))])
	for len(above) < level-1 {
		above = append(above, "")
	}
	r.above = append(above, text)
	low := strings.ToLower(text)
	r.headings = has(low, "configurations", "variants", "类型", "模式") || strings.HasSuffix(low, " types")
}

// markdown reads a table with pipes: a header, a line of dashes, and rows.
func (r *reader) markdown() int {
	header := pipes(r.line(r.at))
	if len(header) < 2 || !dashes(pipes(r.line(r.at+1))) {
		return 0
	}
	g := grid{line: r.at + 1, title: r.before(), header: header}
	n := 2
	for ; ; n++ {
		cells := pipes(r.line(r.at + n))
		if len(cells) < 2 {
			break
		}
		if len(cells) > len(header) {
			r.warn(r.at+n+1, "the row has %d cells, its header %d", len(cells), len(header))
			cells = cells[:len(header)]
		}
		g.rows = append(g.rows, gridRow{r.at + n + 1, cells})
	}
	r.readGrid(g)
	return n
}

// before is the last line with text above the one that is looked at, if it is not far or a heading.
func (r *reader) before() string {
	for i := r.at - 1; i >= max(0, r.at-3); i-- {
		if text := strings.TrimSpace(r.line(i)); text != "" {
			if len(pipes(text)) > 1 {
				return ""
			}
			return strings.TrimLeft(text, "-*# ")
		}
	}
	return ""
}

// pipes splits a line of a Markdown table; a line without a pipe at its begin has none.
func pipes(line string) []string {
	text := strings.TrimSpace(line)
	if !strings.HasPrefix(text, "|") {
		return nil
	}
	text = strings.TrimPrefix(strings.TrimSuffix(text, "|"), "|")
	cells := strings.Split(strings.ReplaceAll(text, `\|`, "\x00"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
	}
	return cells
}

// dashes says whether all cells are of the line that separates header and rows.
func dashes(cells []string) bool {
	other := func(c string) bool { return strings.Trim(c, "-:") != "" || !strings.Contains(c, "-") }
	return len(cells) > 0 && !slices.ContainsFunc(cells, other)
}

// plain reads a table without marks: lines of a label and two or more figures, each line as many, and
// above them a header.
func (r *reader) plain() int {
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
	g := grid{line: r.at + 1, header: header}
	n := 1
	for ; ; n++ {
		label, row := figuresAtEnd(r.line(r.at + n))
		if label == "" || len(row) != len(cells) {
			break
		}
		g.rows = append(g.rows, gridRow{r.at + n + 1, append([]string{label}, row...)})
	}
	// One such line is a sentence that ends in two numbers.
	if len(g.rows) < 2 {
		return 0
	}
	r.readGrid(g)
	return n
}

// broken finds "124/ 8072", which is one cell.
var broken = regexp.MustCompile(`(\d)\s*/\s+(\d)`)

// endFigure is a cell of a plain table.
var endFigure = regexp.MustCompile(`^[+-]?\d[\d.,]*(?:/[+-]?\d[\d.,]*)*%?$`)

// figuresAtEnd splits a line into a label and the figures that follow it.
func figuresAtEnd(line string) (label string, cells []string) {
	words := strings.Fields(broken.ReplaceAllString(line, "$1/$2"))
	i := len(words)
	for i > 0 && endFigure.MatchString(words[i-1]) {
		i--
	}
	return strings.Join(words[:i], " "), words[i:]
}

// headerOf splits the header of a plain table into a label and n names: at tabs or double blanks where
// there are, else by the number of columns and the words that repeat.
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
	if len(words) > n && labelWord(words[0]) {
		first, words = words[0], words[1:]
	}
	names := partition(words, n)
	return append([]string{first}, names...), names != nil
}

var wideGap = regexp.MustCompile(`\t+| {2,}`)

// labelWord says whether a word heads the column of labels.
func labelWord(word string) bool {
	return slices.Contains([]string{"test", "tests", "case", "metric", "benchmark", "scenario", "name", "workload",
		"path", "测试用例", "用例"}, strings.ToLower(word))
}

// maxHeaderWords bounds the work of partition.
const maxHeaderWords = 64

// partition splits words into n names such that neighbours have the most in common: names of things
// that are compared share their first or last words. It is nil if there are too few words, or if n
// names can be made in several ways and nothing tells which.
func partition(words []string, n int) []string {
	if len(words) < n || len(words) > maxHeaderWords || n < 1 {
		return nil
	}
	if len(words) == n {
		return slices.Clone(words)
	}
	best := newPartition(words, n).cuts()
	if best == nil {
		return nil
	}
	var names []string
	for i := range best[1:] {
		names = append(names, strings.Join(words[best[i]:best[i+1]], " "))
	}
	return names
}

// A partitioning keeps, for each last name words[from:to] of a split into k names, the best score, and
// where the name before began.
type partitioning struct {
	words  []string
	n      int
	scores map[[3]int]int
	before map[[3]int]int
}

func newPartition(words []string, n int) *partitioning {
	p := &partitioning{words: words, n: n, scores: map[[3]int]int{}, before: map[[3]int]int{}}
	for to := 1; to <= len(words)-n+1; to++ {
		if p.name(0, to) {
			p.scores[[3]int{1, 0, to}] = 0
		}
	}
	for k := 2; k <= n; k++ {
		p.extend(k)
	}
	return p
}

// extend finds the best splits into k names from those into k-1.
func (p *partitioning) extend(k int) {
	longest := len(p.words) - p.n + 1
	for from := k - 1; from < len(p.words); from++ {
		for start := max(0, from-longest); start < from; start++ {
			score, ok := p.scores[[3]int{k - 1, start, from}]
			if !ok {
				continue
			}
			for to := from + 1; to <= min(len(p.words), from+longest); to++ {
				if !p.name(from, to) {
					continue
				}
				key, total := [3]int{k, from, to}, score+common(p.words[start:from], p.words[from:to])
				if have, seen := p.scores[key]; !seen || total > have {
					p.scores[key], p.before[key] = total, start
				}
			}
		}
	}
}

// name says whether words[from:to] can be a name: it neither begins nor ends with a sign that joins.
func (p *partitioning) name(from, to int) bool {
	joins := func(w string) bool { return strings.Contains("+&-–/", w) }
	if to < len(p.words) && (joins(p.words[to]) || joins(p.words[to-1])) {
		return false
	}
	return !joins(p.words[from]) && !strings.ContainsAny(p.words[from][:1], "0123456789(")
}

// cuts are where the names of the best split begin, and its end; nil if no names have anything in
// common.
func (p *partitioning) cuts() []int {
	best, at := 0, [3]int{}
	for from := len(p.words) - 1; from >= 0; from-- {
		if s, ok := p.scores[[3]int{p.n, from, len(p.words)}]; ok && s > best {
			best, at = s, [3]int{p.n, from, len(p.words)}
		}
	}
	if best == 0 && p.n > 1 || at[2] == 0 {
		return nil
	}
	cuts := []int{at[2]}
	for at[0] > 1 {
		cuts = append(cuts, at[1])
		at = [3]int{at[0] - 1, p.before[at], at[1]}
	}
	cuts = append(cuts, 0)
	slices.Reverse(cuts)
	return cuts
}

// common is how much two neighbouring names share: a first word weighs more than a last one.
func common(a, b []string) int {
	start, end := 0, 0
	for start < min(len(a), len(b)) && strings.EqualFold(a[start], b[start]) {
		start++
	}
	for end < min(len(a), len(b))-start && strings.EqualFold(a[len(a)-1-end], b[len(b)-1-end]) {
		end++
	}
	return 3*start + 2*end
}
