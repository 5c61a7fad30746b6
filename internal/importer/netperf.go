package importer

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedNetperf = "the output of netperf -H SERVER: a line such as \"MIGRATED TCP STREAM TEST from …\" and " +
	"what it measured"

// A section is the output of one netperf test: a banner or command, and the lines up to the next.
type section struct {
	name   string
	line   int    // number of the banner's or command's line, else of the first one
	kind   string // name of the test in the banner
	burst  int    // requests in flight beyond the first
	lines  []string
	banner string   // or the command; empty if the text has neither
	args   []string // of the command; nil if it is missing
}

// bannerLine matches the first line of a test's output, such as
//
//	MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to host () port 0 AF_INET : first burst 0
var (
	bannerLine = regexp.MustCompile(`^\s*(?:MIGRATED )?([A-Z][A-Za-z/| ]*?) TEST (?:to|TO|from) .*$`)
	burstPart  = regexp.MustCompile(`first burst (\d+)`)
	pairLine   = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)=(.*)$`)
)

// readNetperf reads every test of a file. A test that cannot be read is an invalid run beside others, and an error if
// there are none.
func readNetperf(name string, data []byte) (Content, error) {
	var c Content
	var failed error
	for _, s := range netperfSections(name, textLines(data), 1) {
		found, err := s.read()
		if err != nil {
			failed = cmp.Or(failed, err)
			found = []Record{s.failure(err)}
		}
		c.Records = append(c.Records, found...)
		c.Unread = append(c.Unread, s.unread(found)...)
		c.Figures += count(found)
	}
	c.Figures += len(c.Unread)
	switch {
	case failed != nil && count(c.Records) == 0:
		return Content{}, failed
	case len(c.Records) == 0:
		return Content{}, formatError(name, 1, "wanted %s; it begins with %q", wantedNetperf, excerpt(data))
	}
	return c, nil
}

// count returns the number of records with values.
func count(records []Record) (n int) {
	for _, r := range records {
		if len(r.Values) > 0 {
			n++
		}
	}
	return n
}

// failure returns an invalid run for a test that cannot be read, with the reason and what netperf said.
func (s section) failure(err error) Record {
	reason := strings.TrimPrefix(err.Error(), s.name+":")
	if _, after, found := strings.Cut(reason, ErrFormat.Error()+": "); found {
		reason = after
	}
	if said := strings.Join(strings.Fields(strings.Join(s.lines, " ")), " "); s.firstRow() < 0 && said != "" {
		reason = "netperf printed no result, but: " + strings.ToValidUTF8(said[:min(len(said), 200)], "")
	}
	o := s.newOutput(0)
	r := Record{Workload: o.workload(o.isStream()), Tool: "netperf", Place: fmt.Sprintf("line %d", s.line), Text: s.text()}
	r.Facts, r.Invalid = o.facts(o.isStream()), []result.Warning{{Code: result.ToolReports, Text: reason}}
	return r
}

// text returns the lines of the section, the first one included.
func (s section) text() []byte {
	return []byte(strings.Join(append([]string{s.banner}, s.lines...), "\n") + "\n")
}

// netperfSections splits lines at commands and banners. Lines before the first are a section if they have KEY=value
// output: -P 0 omits banners.
func netperfSections(name string, lines []string, first int) []section {
	current := section{name: name, line: first}
	var all []section
	for i, line := range lines {
		number := first + i
		line = strings.TrimRight(line, "\r")
		next, begins := netperfCommand(name, number, line)
		if m := bannerLine.FindStringSubmatch(line); m != nil && !begins {
			next, begins = section{name: name, line: number, kind: strings.ToUpper(m[1]), banner: line}, true
			if b := burstPart.FindStringSubmatch(line); b != nil {
				next.burst, _ = strconv.Atoi(b[1])
			}
			if current.args != nil && current.blank() {
				next.args = current.args // the command of this banner
			}
		}
		if !begins {
			current.lines = append(current.lines, line)
			continue
		}
		if current.banner != "" || current.hasPairs() {
			all = append(all, current)
		}
		current = next
	}
	if current.banner != "" || current.hasPairs() {
		all = append(all, current)
	}
	return all
}

// blank reports whether the section has no line with text.
func (s section) blank() bool {
	return !slices.ContainsFunc(s.lines, func(line string) bool { return strings.TrimSpace(line) != "" })
}

// hasPairs reports whether the section has KEY=value lines.
func (s section) hasPairs() bool {
	for _, line := range s.lines {
		if pairLine.MatchString(line) {
			return true
		}
	}
	return false
}

// lineOf returns the number of line i of the section, from 0; -1 is the banner.
func (s section) lineOf(i int) int {
	if s.banner != "" {
		i++
	}
	return s.line + i
}

// fail returns an error about line i of the section, from 0; -1 is the banner.
func (s section) fail(i int, format string, a ...any) error {
	return formatError(s.name, s.lineOf(i), format, a...)
}

// read detects the style of the output and reads it: KEY=value, CSV, columns with names, or a classic table.
func (s section) read() ([]Record, error) {
	var outs []*output
	var err error
	row := s.firstRow()
	switch {
	case s.hasPairs():
		outs = []*output{s.pairs()}
	case s.csvAt() >= 0:
		outs, err = s.csv(s.csvAt())
	case row < 0 && !bannerLine.MatchString(s.banner) && len(s.complaints()) == 0:
		return nil, nil // a command without output
	case row < 0 && len(s.complaints()) == 0:
		err = s.fail(-1, "nothing was measured after this line; wanted %s", wantedNetperf)
	case row < 0:
		outs = []*output{s.newOutput(0)} // its error messages make it an invalid run
	case s.unitsAbove(row) != "":
		outs, err = s.classic(row)
	default:
		outs, err = s.columns(row)
	}
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, o := range outs {
		o.addFromCommand()
		r, err := o.record()
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// An output is the result of one test: values by netperf's output selectors.
type output struct {
	section
	row    int // index within the section of the line with the values
	values map[string]string
	err    error // first value that is no number
}

func (s section) newOutput(row int) *output {
	return &output{section: s, row: row, values: map[string]string{}}
}

// pairs reads the output of -k. netperf prints each selector once, so a repeated one replaces the value.
func (s section) pairs() *output {
	o := s.newOutput(0)
	for _, line := range s.lines {
		if m := pairLine.FindStringSubmatch(line); m != nil {
			o.values[m[1]] = strings.TrimSpace(m[2])
		}
	}
	return o
}

// csvAt returns the index of the line with the names of -o; -1 if there is none.
func (s section) csvAt() int {
	for i, line := range s.lines {
		names, err := csvRow(line)
		known := slices.ContainsFunc(names, func(name string) bool { return selectors[strings.TrimSpace(name)] != "" })
		if err == nil && known && (len(names) > 1 || s.numberFollows(i)) {
			return i
		}
	}
	return -1
}

// numberFollows reports whether the line after line i is a number, as in the output of -o with one selector.
func (s section) numberFollows(i int) bool {
	if i+1 >= len(s.lines) {
		return false
	}
	return isNumber(s.lines[i+1])
}

// csvRow splits a line of CSV into cells.
func csvRow(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.FieldsPerRecord = -1
	r.LazyQuotes = true
	return r.Read()
}

// csv reads the output of -o: names in line i, then a line of values for each test. Other lines, such as a prompt, are
// no values.
func (s section) csv(i int) ([]*output, error) {
	names, err := csvRow(s.lines[i])
	if err != nil {
		return nil, s.fail(i, "%w; wanted the names of -o", err)
	}
	var outs []*output
	wrong := -1 // the first line that is no row of values
	for at := i + 1; at < len(s.lines); at++ {
		cells, err := csvRow(s.lines[at])
		if err != nil || len(cells) != len(names) || !slices.ContainsFunc(cells, isNumber) {
			if wrong < 0 && strings.TrimSpace(s.lines[at]) != "" {
				wrong = at
			}
			continue
		}
		o := s.newOutput(at)
		for j, name := range names {
			if key := selectors[strings.TrimSpace(name)]; key != "" {
				o.values[key] = strings.TrimSpace(cells[j])
			}
		}
		outs = append(outs, o)
	}
	switch {
	case len(outs) > 0:
		return outs, nil
	case wrong >= 0:
		cells, _ := csvRow(s.lines[wrong])
		return nil, s.fail(wrong, "it has %d values for %d names; wanted the values of -o", len(cells), len(names))
	}
	return nil, s.fail(i, "no values follow the names of -o")
}

// isNumber reports whether a text is a number.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil
}

// unread returns the rows of figures of the section that no record has.
func (s section) unread(records []Record) (list []UnreadLine) {
	if first := s.firstRow(); first >= 0 && !s.hasPairs() && s.csvAt() < 0 {
		for _, i := range s.rowsLike(first)[count(records):] {
			list = append(list, UnreadLine{s.lineOf(i), "a row of a test that is not read"})
		}
	}
	return list
}

// rowsLike returns the indices of the rows from the first one on that have as many numbers: with -P 0 netperf prints no
// header between the results of several tests. A receiver's row below a sender's is none of them.
func (s section) rowsLike(first int) []int {
	n := len(strings.Fields(s.lines[first]))
	rows := []int{first}
	for i := first + 1; i < len(s.lines); i++ {
		fields := strings.Fields(s.lines[i])
		numbers := !slices.ContainsFunc(fields, func(f string) bool { return !isNumber(f) })
		switch {
		case numbers && len(fields) == n:
			rows = append(rows, i)
		case len(fields) > 0 && !(numbers && s.udpStream()):
			return rows // other tables follow
		}
	}
	return rows
}

// firstRow returns the index of the first line that begins with a number, interim results excepted; -1 if there is
// none.
func (s section) firstRow() int {
	for i, line := range s.lines {
		if fields := strings.Fields(line); len(fields) > 0 && isNumber(fields[0]) {
			return i
		}
	}
	return -1
}

// paddedValue matches a value of -O with the spaces after it.
var paddedValue = regexp.MustCompile(`[^ ]+ *`)

// columns reads the output of -O: left-aligned values in a row, and above them lines of their names.
func (s section) columns(row int) ([]*output, error) {
	o := s.newOutput(row)
	places := paddedValue.FindAllStringIndex(s.lines[row], -1)
	for j, place := range places {
		var name []string
		for _, head := range s.lines[:row] {
			if strings.HasPrefix(head, "!!!") || place[0] >= len(head) {
				continue
			}
			end := len(head)
			if j+1 < len(places) {
				end = min(end, place[1])
			}
			name = append(name, strings.Fields(head[place[0]:end])...)
		}
		if key := selectors[strings.Join(name, " ")]; key != "" {
			o.values[key] = strings.TrimSpace(s.lines[row][place[0]:place[1]])
		}
	}
	if len(o.values) == 0 {
		return nil, s.fail(row, "none of the columns above these values has a name of netperf's; wanted the output of -O")
	}
	return []*output{o}, nil
}

// findWord returns the index of the first line that contains a word, which is given in upper case but found in any; -1
// if there is none.
func (s section) findWord(word string) int {
	return slices.IndexFunc(s.lines, func(line string) bool {
		return slices.Contains(strings.Fields(strings.ToUpper(line)), word)
	})
}

// complaint matches an error message of netperf.
var complaint = regexp.MustCompile(`: .*(error|failed|refused|could not)|(error|failed|refused|could not).*: `)

// complaints returns netperf's error messages as warnings.
func (s section) complaints() []result.Warning {
	var list []result.Warning
	for _, line := range s.lines {
		text := strings.TrimSpace(line)
		switch {
		case strings.Contains(text, "Desired confidence was not achieved"):
			text = "the confidence that was asked for was not achieved within the iterations"
		case !complaint.MatchString(text):
			continue
		}
		list = append(list, result.Warning{Code: result.ToolReports, Text: text})
	}
	return list
}

// classic reads the tables of TCP_STREAM, UDP_STREAM, TCP_RR and similar tests.
func (s section) classic(first int) ([]*output, error) {
	names, err := s.classicNames(first, len(strings.Fields(s.lines[first])))
	if err != nil {
		return nil, err
	}
	var outs []*output
	for _, row := range s.rowsLike(first) {
		o := s.newOutput(row)
		for i, field := range strings.Fields(s.lines[row]) {
			o.values[names[i]] = field
		}
		if s.udpStream() {
			if err := o.readReceiver(); err != nil {
				return nil, err
			}
		}
		outs = append(outs, o)
	}
	if len(outs) == 1 {
		outs[0].readRoundTrip()
	}
	return outs, nil
}

// classicNames returns the selectors of a row with this number of fields.
func (s section) classicNames(row, fields int) ([]string, error) {
	var names, cost []string
	units := s.unitsAbove(row)
	switch {
	case s.findWord("TRANS.") >= 0, s.findWord("REQUEST") >= 0 && !s.bannerIsStream():
		names = []string{"LSS_SIZE", "LSR_SIZE", "REQUEST_SIZE", "RESPONSE_SIZE", "ELAPSED_TIME", "TRANSACTION_RATE"}
		if s.findWord("TRANS.") < 0 {
			names[5] = "THROUGHPUT" // in the unit of -f
		}
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

// readReceiver reads the second row of UDP_STREAM, the receiver's: size, time, messages, throughput.
func (o *output) readReceiver() error {
	if o.row+1 >= len(o.lines) {
		return o.fail(o.row, "the receiver's line is missing below it")
	}
	fields := strings.Fields(o.lines[o.row+1])
	names := []string{"RSR_SIZE", "REMOTE_ELAPSED", "REMOTE_RECV_CALLS", "THROUGHPUT", "REMOTE_CPU_UTIL", "REMOTE_SD"}
	if len(fields) != 4 && len(fields) != 6 {
		return o.fail(o.row+1, "it has %d values; the receiver's line of UDP_STREAM has 4, or 6 with CPU", len(fields))
	}
	for i, f := range fields {
		o.values[names[i]] = f
	}
	return nil
}

// readRoundTrip reads the latency in µs and the rate that -v 2 adds to a request/response test.
func (o *output) readRoundTrip() {
	at := o.findWord("ROUNDTRIP")
	if at < o.row || at+3 >= len(o.lines) {
		return
	}
	if fields := strings.Fields(o.lines[at+3]); len(fields) >= 6 {
		o.values["RT_LATENCY"] = fields[4]
		o.values["TRANSACTION_RATE"] = cmp.Or(o.values["TRANSACTION_RATE"], fields[5])
	}
}

// unitsAbove returns the line of units, "bytes  bytes …", above a row of a classic table; empty if there is none.
func (s section) unitsAbove(row int) string {
	for i := row - 1; i >= 0; i-- {
		if strings.HasPrefix(strings.TrimSpace(s.lines[i]), "bytes") {
			return strings.TrimSpace(s.lines[i])
		}
	}
	return ""
}

// oneWay matches the kinds of tests that send bytes in one direction.
var oneWay = regexp.MustCompile(`STREAM|MAERTS|SENDFILE|UNIDIRECTIONAL SEND|UDP SEND`)

// bannerIsStream reports whether the banner names a test in one direction.
func (s section) bannerIsStream() bool { return oneWay.MatchString(s.kind) }

// udpStream reports whether the banner names a test of datagrams in one direction.
func (s section) udpStream() bool { return strings.HasPrefix(s.kind, "UDP") && s.bannerIsStream() }

// record converts the output to a record.
func (o *output) record() (Record, error) {
	stream := o.isStream()
	r := Record{Workload: o.workload(stream), Tool: "netperf", Place: fmt.Sprintf("line %d", o.line),
		Text: o.text()}
	r.Window = max(o.get("ELAPSED_TIME"), 0)
	r.Values, r.Facts = o.measured(stream, r.Window), o.facts(stream)
	complaints := o.complaints()
	switch {
	case o.err != nil:
		return Record{}, o.err
	case len(r.Values) > 0:
		r.Warnings = complaints
	case len(complaints) > 0:
		r.Invalid = complaints
	default:
		return r, o.fail(o.row, "none of its values is a measurement; wanted at least THROUGHPUT, TRANSACTION_RATE or "+
			"a latency")
	}
	return r, nil
}
