package importer

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedNetperf = "the output of netperf: a line such as \"MIGRATED TCP STREAM TEST from …\" and what it measured"

// A section is the output of one netperf: its banner, and the lines up to the next.
type section struct {
	name   string
	line   int // of the banner, or of the first line where there is none
	kind   string
	burst  int // requests in flight beyond the first
	lines  []string
	banner string
}

// banner is the first line of a test's output, such as
//
//	MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to host () port 0 AF_INET : first burst 0
var (
	bannerLine = regexp.MustCompile(`^\s*(?:MIGRATED )?([A-Z][A-Za-z/| ]*?) TEST (?:to|TO|from) .*$`)
	burstPart  = regexp.MustCompile(`first burst (\d+)`)
	pairLine   = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)=(.*)$`)
)

// readNetperf reads every test of a file.
func readNetperf(name string, data []byte) ([]Record, error) {
	sections := netperfSections(name, string(data))
	var records []Record
	for _, s := range sections {
		found, err := s.read()
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
	}
	if len(records) == 0 {
		return nil, broken(name, 1, "wanted %s; it begins with %q", wantedNetperf, excerpt(data))
	}
	return records, nil
}

// netperfSections cuts a text at the banners. What stands before the first has none, which -P 0 leaves
// out; it counts only if it has something of netperf's.
func netperfSections(name, text string) []section {
	open := section{name: name, line: 1}
	var all []section
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		m := bannerLine.FindStringSubmatch(line)
		if m == nil {
			open.lines = append(open.lines, line)
			continue
		}
		if open.banner != "" || open.hasPairs() {
			all = append(all, open)
		}
		open = section{name: name, line: number, kind: strings.ToUpper(m[1]), banner: line}
		if b := burstPart.FindStringSubmatch(line); b != nil {
			open.burst, _ = strconv.Atoi(b[1])
		}
	}
	if open.banner != "" || open.hasPairs() {
		all = append(all, open)
	}
	return all
}

func (s section) hasPairs() bool {
	for _, line := range s.lines {
		if pairLine.MatchString(line) {
			return true
		}
	}
	return false
}

// fail is an error about the section's line i, from 0; the banner is -1.
func (s section) fail(i int, format string, a ...any) error {
	line := s.line
	if s.banner != "" {
		line++
	}
	return broken(s.name, line+i, format, a...)
}

// read finds the style of the output and reads it: key=value, CSV, columns with names, or one of the
// classic tables.
func (s section) read() ([]Record, error) {
	var outs []netperfOutput
	var err error
	switch {
	case s.hasPairs():
		outs = []netperfOutput{s.pairs()}
	case s.csvAt() >= 0:
		outs, err = s.csv(s.csvAt())
	case s.firstRow() >= 0 && s.unitsAbove(s.firstRow()) != "":
		outs, err = s.classic()
	default:
		outs, err = s.columns()
	}
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, o := range outs {
		r, err := s.record(o)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// A netperfOutput is what one test printed: the values of netperf's output selectors.
type netperfOutput struct {
	line   int // index within the section
	values map[string]string
	said   []string // complaints in netperf's words
}

// pairs reads -k. A selector that comes again begins nothing new: netperf prints each once.
func (s section) pairs() netperfOutput {
	o := netperfOutput{values: map[string]string{}, said: s.complaints()}
	for _, line := range s.lines {
		if m := pairLine.FindStringSubmatch(line); m != nil {
			o.values[m[1]] = strings.TrimSpace(m[2])
		}
	}
	return o
}

// csvAt is the index of the line with the names of -o; -1 if there is none.
func (s section) csvAt() int {
	for i, line := range s.lines {
		names, err := csvRow(line)
		known := slices.ContainsFunc(names, func(name string) bool { return selector(strings.TrimSpace(name)) != "" })
		if err == nil && known && (len(names) > 1 || s.single(i)) {
			return i
		}
	}
	return -1
}

// single says whether the name in line i stands alone over a number: -o with one selector.
func (s section) single(i int) bool {
	if i+1 >= len(s.lines) {
		return false
	}
	_, err := strconv.ParseFloat(strings.TrimSpace(s.lines[i+1]), 64)
	return err == nil
}

func csvRow(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	return r.Read()
}

// csv reads -o: names in line i, then a line of values for each test.
func (s section) csv(i int) ([]netperfOutput, error) {
	names, err := csvRow(s.lines[i])
	if err != nil {
		return nil, s.fail(i, "%w; wanted the names of -o", err)
	}
	var outs []netperfOutput
	for at := i + 1; at < len(s.lines); at++ {
		if strings.TrimSpace(s.lines[at]) == "" {
			continue
		}
		cells, err := csvRow(s.lines[at])
		if err != nil || len(cells) != len(names) {
			return nil, s.fail(at, "it has %d values for %d names; wanted the values of -o", len(cells), len(names))
		}
		o := netperfOutput{line: at, values: map[string]string{}, said: s.complaints()}
		for j, name := range names {
			if key := selector(strings.TrimSpace(name)); key != "" {
				o.values[key] = strings.TrimSpace(cells[j])
			}
		}
		outs = append(outs, o)
	}
	if len(outs) == 0 {
		return nil, s.fail(i, "no values follow the names of -o")
	}
	return outs, nil
}

// firstRow is the index of the first line that begins with a number.
func (s section) firstRow() int {
	for i, line := range s.lines {
		if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(line, "Interim") {
			if _, err := strconv.ParseFloat(fields[0], 64); err == nil {
				return i
			}
		}
	}
	return -1
}

type column struct{ name, value string }

// columnNames reads a row of -O, in which values and the lines of a name are left-aligned.
func (s section) columnNames(row int) []column {
	line := s.lines[row]
	var starts []int
	for i := range len(line) {
		if line[i] != ' ' && (i == 0 || line[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	columns := make([]column, len(starts))
	for j, start := range starts {
		end := len(line)
		if j+1 < len(starts) {
			end = starts[j+1]
		}
		columns[j].value = strings.TrimSpace(line[start:end])
		var words []string
		for i := range row {
			head := s.lines[i]
			if strings.HasPrefix(head, "!!!") || start >= len(head) {
				continue
			}
			last := len(head)
			if j+1 < len(starts) {
				last = min(end, last)
			}
			words = append(words, strings.Fields(head[start:last])...)
		}
		columns[j].name = strings.Join(words, " ")
	}
	return columns
}

// columns reads -O.
func (s section) columns() ([]netperfOutput, error) {
	row := s.firstRow()
	if row < 0 {
		return s.nothing()
	}
	o := netperfOutput{line: row, values: map[string]string{}, said: s.complaints()}
	for _, c := range s.columnNames(row) {
		if key := selector(c.name); key != "" {
			o.values[key] = c.value
		}
	}
	if len(o.values) == 0 {
		return nil, s.fail(row, "none of the columns above these values has a name of netperf's; wanted the output of -O")
	}
	return []netperfOutput{o}, nil
}

// nothing is for a test that printed no numbers: what it complained of makes it an invalid run.
func (s section) nothing() ([]netperfOutput, error) {
	said := s.complaints()
	if len(said) == 0 {
		return nil, s.fail(-1, "nothing was measured after this line; wanted %s", wantedNetperf)
	}
	return []netperfOutput{{values: map[string]string{}, said: said}}, nil
}

// at is the index of the first line that has a word, in upper case; -1 if none has.
func (s section) at(word string) int {
	for i, line := range s.lines {
		for _, f := range strings.Fields(line) {
			if strings.ToUpper(f) == word {
				return i
			}
		}
	}
	return -1
}

// complaints are the lines that are neither names nor numbers.
func (s section) complaints() []string {
	var said []string
	for _, line := range s.lines {
		text := strings.TrimSpace(line)
		switch {
		case strings.Contains(text, "Desired confidence was not achieved"):
			said = append(said, "the confidence that was asked for was not achieved within the iterations")
		case strings.Contains(text, ": ") && (strings.Contains(text, "error") || strings.Contains(text, "failed") ||
			strings.Contains(text, "refused") || strings.Contains(text, "could not")):
			said = append(said, text)
		}
	}
	return said
}

// classic reads the tables of TCP_STREAM, UDP_STREAM, TCP_RR and their kin.
func (s section) classic() ([]netperfOutput, error) {
	row := s.firstRow()
	if row < 0 {
		return s.nothing()
	}
	fields := strings.Fields(s.lines[row])
	o := netperfOutput{line: row, values: map[string]string{}, said: s.complaints()}
	names, err := s.classicNames(row, len(fields))
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		o.values[name] = fields[i]
	}
	if strings.HasPrefix(s.kind, "UDP") && s.stream() {
		if err := s.received(&o, row); err != nil {
			return nil, err
		}
	}
	s.roundTrip(&o, row)
	return []netperfOutput{o}, nil
}

// classicNames are the selectors of a row of so many fields.
func (s section) classicNames(row, fields int) ([]string, error) {
	var names, cost []string
	units := s.unitsAbove(row)
	switch {
	case s.at("TRANS.") >= 0:
		names = []string{"LSS_SIZE", "LSR_SIZE", "REQUEST_SIZE", "RESPONSE_SIZE", "ELAPSED_TIME", "TRANSACTION_RATE"}
		cost = []string{"LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "LOCAL_SD", "REMOTE_SD"}
	case strings.HasPrefix(s.kind, "UDP"):
		names = []string{"LSS_SIZE", "LOCAL_SEND_SIZE", "ELAPSED_TIME",
			"LOCAL_SEND_CALLS", "SEND_ERRORS", "LOCAL_SEND_THROUGHPUT"}
		cost = []string{"LOCAL_CPU_UTIL", "LOCAL_SD"}
	default:
		names = []string{"RSR_SIZE", "LSS_SIZE", "LOCAL_SEND_SIZE", "ELAPSED_TIME", "THROUGHPUT"}
		cost = []string{"LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL", "LOCAL_SD", "REMOTE_SD"}
	}
	switch fields {
	case len(names):
		return names, nil
	case len(names) + len(cost):
		return append(names, cost...), nil
	}
	return nil, s.fail(row, "it has %d values; a table of %s with units %q has %d, or %d with CPU",
		fields, s.kind, units, len(names), len(names)+len(cost))
}

// received reads the second row of UDP_STREAM, the receiver's: size, time, messages, throughput.
func (s section) received(o *netperfOutput, row int) error {
	if row+1 >= len(s.lines) {
		return s.fail(row, "the receiver's line is missing below it")
	}
	fields := strings.Fields(s.lines[row+1])
	names := []string{"RSR_SIZE", "REMOTE_ELAPSED", "REMOTE_RECV_CALLS", "THROUGHPUT", "REMOTE_CPU_UTIL", "REMOTE_SD"}
	if len(fields) != 4 && len(fields) != 6 {
		return s.fail(row+1, "it has %d values; the receiver's line of UDP_STREAM has 4, or 6 with CPU", len(fields))
	}
	for i, f := range fields {
		o.values[names[i]] = f
	}
	return nil
}

// roundTrip reads what -v 2 adds to a request and response test.
func (s section) roundTrip(o *netperfOutput, row int) {
	at := s.at("ROUNDTRIP")
	if at < row || at+3 >= len(s.lines) {
		return
	}
	if fields := strings.Fields(s.lines[at+3]); len(fields) >= 6 {
		o.values["RT_LATENCY"] = fields[4]
	}
}

// unitsAbove is the line of units above a row of a classic table: "bytes  bytes …".
func (s section) unitsAbove(row int) string {
	for i := row - 1; i >= 0; i-- {
		if strings.HasPrefix(strings.TrimSpace(s.lines[i]), "bytes") {
			return strings.TrimSpace(s.lines[i])
		}
	}
	return ""
}

// stream says whether the test moves bytes one way.
func (s section) stream() bool {
	for _, word := range []string{"STREAM", "MAERTS", "SENDFILE", "UNIDIRECTIONAL SEND", "UDP SEND"} {
		if strings.Contains(s.kind, word) {
			return true
		}
	}
	return false
}

// complaints are warnings of what netperf said.
func (o netperfOutput) complaints() []result.Warning {
	var list []result.Warning
	for _, text := range o.said {
		list = append(list, result.Warning{Code: result.ToolReports, Text: text})
	}
	return list
}

// record makes a record of an output.
func (s section) record(o netperfOutput) (Record, error) {
	t, err := s.test(o)
	if err != nil {
		return Record{}, err
	}
	r := Record{Workload: t.name, Tool: "netperf", Place: fmt.Sprintf("line %d", s.line),
		Text: []byte(strings.Join(append([]string{s.banner}, s.lines...), "\n") + "\n")}
	r.Values, r.Window = t.values, t.window
	r.Facts = append([]result.Fact{{Name: "tool.version", Value: result.Unknown}}, t.facts...)
	if len(t.values) == 0 {
		r.Invalid = append(r.Invalid, o.complaints()...)
		if len(r.Invalid) == 0 {
			return r, s.fail(o.line, "none of its values is a measurement; wanted at least THROUGHPUT, TRANSACTION_RATE or a latency")
		}
		return r, nil
	}
	r.Warnings = append(r.Warnings, o.complaints()...)
	return r, nil
}
