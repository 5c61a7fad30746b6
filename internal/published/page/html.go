package page

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// isHTML reports whether a file is a page of HTML, by its name or its first tag.
func isHTML(name, text string) bool {
	low := strings.ToLower(strings.TrimSpace(text[:min(len(text), 1024)]))
	return slices.Contains([]string{".html", ".htm", ".xhtml"}, strings.ToLower(path.Ext(name))) ||
		strings.HasPrefix(low, "<!doctype html") || strings.HasPrefix(low, "<html")
}

// withHTMLTables replaces the tables of HTML in a page of Markdown by those of Markdown, outside blocks of code.
// numbers has the number of each line in the file; it is nil for a page without such tables. over is as of [fromHTML].
func withHTMLTables(page []string) (lines []string, numbers []int, over int) {
	isTable := func(line string) bool {
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "<table")
	}
	if !slices.ContainsFunc(page, isTable) {
		return page, nil, 0
	}
	inCode := false
	for i := 0; i < len(page); i++ {
		if inCode = inCode != isFence(page[i]); inCode || !isTable(page[i]) {
			lines, numbers = append(lines, page[i]), append(numbers, i+1)
			continue
		}
		end := i
		for end < len(page)-1 && !strings.Contains(strings.ToLower(page[end]), "</table") {
			end++
		}
		table, at, over := fromHTML(strings.Join(page[i:end+1], "\n"))
		if over > 0 {
			return nil, nil, over + i
		}
		for j := range at {
			at[j] += i
		}
		lines, numbers = append(lines, table...), append(numbers, at...)
		i = end
	}
	return lines, numbers, 0
}

// A htmlPage converts HTML to lines of Markdown: headings, tables, items of lists and blocks of code.
type htmlPage struct {
	lines   []string
	numbers []int // of the lines in the file
	line    int   // current line of the file, from 1

	text    strings.Builder // since the last line of Markdown
	began   int             // line in which the text began
	mark    string          // before the text: of a heading or an item
	skipped int             // open elements without text for readers, such as scripts
	pre     bool            // in a block of code
	rows    [][]htmlCell    // of the current table
	cells   int             // of all tables, with spans
}

// A htmlCell is a cell of a table.
type htmlCell struct {
	text       string
	line       int
	head       bool
	wide, high int // number of columns and rows that it spans
}

// Limits of spans. Wider cells are cut.
const maxWide, maxHigh = 200, 1000

// fromHTML converts HTML to lines of Markdown with the number of each in the file. Of a page with more than maxCells
// cells it returns the line in which they are exceeded.
func fromHTML(text string) (lines []string, numbers []int, over int) {
	z := html.NewTokenizer(strings.NewReader(text))
	p := htmlPage{line: 1}
	for {
		kind := z.Next()
		breaks := strings.Count(string(z.Raw()), "\n")
		switch kind {
		case html.ErrorToken:
			p.flush()
			p.endTable()
			return p.lines, p.numbers, 0
		case html.TextToken:
			p.addText(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			p.start(z.Token())
		case html.EndTagToken:
			p.end(z.Token().DataAtom)
		}
		if p.cells > maxCells {
			return nil, nil, p.line
		}
		p.line += breaks
	}
}

// addText adds text of the current element.
func (p *htmlPage) addText(text string) {
	if p.skipped > 0 {
		return
	}
	if strings.TrimSpace(p.text.String()) == "" {
		p.began = p.line
		if !p.pre {
			p.began += strings.Count(text[:len(text)-len(strings.TrimLeft(text, " \t\r\n"))], "\n")
		}
	}
	p.text.WriteString(html.UnescapeString(text))
}

// emit adds a line of Markdown.
func (p *htmlPage) emit(text string, number int) {
	p.lines, p.numbers = append(p.lines, text), append(p.numbers, number)
}

// flush ends the current text: it is that of the current cell, or a line.
func (p *htmlPage) flush() {
	text := p.text.String()
	p.text.Reset()
	if p.pre {
		for i, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
			p.emit(line, p.began+i)
		}
		return
	}
	text = strings.Join(strings.Fields(text), " ")
	if n := len(p.rows); n > 0 && len(p.rows[n-1]) > 0 {
		cell := &p.rows[n-1][len(p.rows[n-1])-1]
		cell.text = strings.TrimSpace(cell.text + " " + text)
		return
	}
	if text != "" {
		p.emit(p.mark+text, cmp.Or(p.began, p.line))
		p.emit("", p.line)
	}
	p.mark = ""
}

// start takes a start tag.
func (p *htmlPage) start(t html.Token) {
	switch t.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Sup:
		if t.Type == html.StartTagToken {
			p.skipped++
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		p.flush()
		p.mark = strings.Repeat("#", int(t.Data[1]-'0')) + " "
	case atom.Li:
		p.flush()
		p.mark = "- "
	case atom.Br, atom.P, atom.Div, atom.Caption:
		p.flush()
	case atom.Pre:
		p.flush()
		p.emit("```", p.line)
		p.pre, p.began = true, p.line
	case atom.Table:
		p.flush()
		p.endTable()
	case atom.Tr:
		p.flush()
		p.rows = append(p.rows, nil)
	case atom.Td, atom.Th:
		p.flush()
		if len(p.rows) == 0 {
			p.rows = append(p.rows, nil)
		}
		c := htmlCell{line: p.line, head: t.DataAtom == atom.Th, wide: 1, high: 1}
		for _, a := range t.Attr {
			n, _ := strconv.Atoi(a.Val)
			switch a.Key {
			case "colspan":
				c.wide = max(1, min(n, maxWide))
			case "rowspan":
				c.high = max(1, min(n, maxHigh))
			}
		}
		p.cells += c.wide * c.high
		p.rows[len(p.rows)-1] = append(p.rows[len(p.rows)-1], c)
	}
}

// end takes an end tag.
func (p *htmlPage) end(tag atom.Atom) {
	switch tag {
	case atom.Script, atom.Style, atom.Template, atom.Sup:
		p.skipped = max(0, p.skipped-1)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Li, atom.P, atom.Div, atom.Caption, atom.Td, atom.Th:
		p.flush()
	case atom.Pre:
		p.flush()
		p.pre = false
		p.emit("```", p.line)
	case atom.Table:
		p.flush()
		p.endTable()
	}
}

// endTable adds the lines of the current table.
func (p *htmlPage) endTable() {
	grid := spread(p.rows)
	p.rows = nil
	if len(grid) == 0 {
		return
	}
	heads := 0
	for heads < len(grid) && !slices.ContainsFunc(grid[heads], func(c htmlCell) bool { return !c.head }) {
		heads++
	}
	heads = max(1, min(heads, len(grid)-1))
	header := make([]string, len(grid[0]))
	for column := range header {
		var words []string
		for _, row := range grid[:heads] {
			if text := row[column].text; !slices.Contains(words, text) {
				words = append(words, text)
			}
		}
		header[column] = strings.Join(words, " ")
	}
	p.emit("", p.line)
	p.emit(pipeRow(header), grid[0][0].line)
	p.emit("|"+strings.Repeat("---|", len(header)), grid[0][0].line)
	for _, row := range grid[heads:] {
		texts := make([]string, len(row))
		for i, c := range row {
			texts[i] = c.text
		}
		p.emit(pipeRow(texts), row[0].line)
	}
	p.emit("", p.line)
}

func pipeRow(cells []string) string {
	escaped := make([]string, len(cells))
	for i, c := range cells {
		escaped[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(escaped, " | ") + " |"
}

// spread returns rows of equal length, with a cell for each column and row that a cell spans.
func spread(rows [][]htmlCell) [][]htmlCell {
	rows = slices.DeleteFunc(rows, func(row []htmlCell) bool { return len(row) == 0 })
	grid, columns := make([]map[int]htmlCell, len(rows)), 0
	for y := range rows {
		grid[y] = map[int]htmlCell{}
	}
	for y, row := range rows {
		x := 0
		for _, c := range row {
			for taken := true; taken; x++ {
				_, taken = grid[y][x]
			}
			x--
			for right := x + c.wide; x < right; x++ {
				if _, taken := grid[y][x]; taken {
					break
				}
				for below := y; below < min(y+c.high, len(rows)); below++ {
					grid[below][x] = c
				}
			}
		}
		for at := range grid[y] {
			columns = max(columns, at+1)
		}
	}
	all := make([][]htmlCell, len(rows))
	for y, row := range rows {
		for x := range columns {
			c := grid[y][x]
			c.line = row[0].line
			all[y] = append(all[y], c)
		}
	}
	return all
}
