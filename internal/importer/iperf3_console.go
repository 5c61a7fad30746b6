package importer

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/iperf3"
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// iperf3 prints a row for each flow and interval, and ends a test with summaries of what was sent and received:
//
//	[  5]   0.00-1.00   sec   581 MBytes  4.87 Gbits/sec    0   1.37 MBytes
//	[SUM]   0.00-30.00  sec  26.5 GBytes  7.60 Gbits/sec                   receiver
//	[  5][RX-C]   0.00-30.00  sec  8.46 GBytes  2.42 Gbits/sec  359             sender
//	[  5]   0.00-30.00  sec  5.21 GBytes  1.49 Gbits/sec  0.009 ms  141431/4143607 (3.4%)  receiver
//
// Anything may stand before a row: a quotation mark, the time of a log, the name of a pod.
var (
	flowRow = regexp.MustCompile(`\[\s*(SUM|\d+)\](?:\[(TX-C|RX-C|TX-S|RX-S)\])?\s+` +
		`(\d+(?:\.\d+)?)\s*-\s*(\d+(?:\.\d+)?)\s+sec\s+\d+(?:\.\d+)?\s+[KMGT]?Bytes\s+` +
		`(\d+(?:\.\d+)?)\s+([KMGT]?)(bits|Bytes)/sec\s*(.*)$`)
	interimRow   = regexp.MustCompile(`\[\s*(?:SUM|\d+)\]\S*\s+\d+\.\d\d\s*-\s*\d+\.\d\d\s+sec\s`)
	sideWord     = regexp.MustCompile(`(?:^|\s)(sender|receiver)\W*$`)
	datagramPart = regexp.MustCompile(`^(\d+(?:\.\d+)?) ms\s+(-?\d+)/(\d+) \(`)
	datagramLine = regexp.MustCompile(`\[\s*\d+\]\s+Sent \d+ datagrams`) // below a summary of iperf 3.0 and 3.1
	rateText     = regexp.MustCompile(`\d\s*[KMGT]?(?:bits|Bytes)/sec`)
)

// A flowSummary is a parsed summary of a flow.
type flowSummary struct {
	line             int     // its number
	flow, role, side string  // "5" or "SUM"; such as "TX-C" with --bidir, else empty; "sender" or "receiver"
	ofServer         bool    // the server's view of flows that the client knows, too
	seconds, bits    float64 // length of the interval; bits per second
	retransmits      float64 // -1: not reported
	udp              bool
	jitter           float64 // seconds
	lost, datagrams  float64
	derived          bool // what arrived is computed from what was sent and lost
}

// parseSummary parses a summary. It returns none for other lines and for impossible numbers, and two for a line of
// iperf 3.0 and 3.1 about datagrams: it says without a word for a side what was sent, and how much of it was lost. both
// tells that the line is such a one.
func parseSummary(line string, both bool) []flowSummary {
	m := flowRow.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	number := func(text string) float64 { return parseScaled(text, 1) }
	s := flowSummary{flow: m[1], role: m[2], seconds: number(m[4]) - number(m[3]), retransmits: -1,
		ofServer: strings.HasSuffix(m[2], "-S")}
	if m[7] == "bits" {
		s.bits = parseScaled(m[5]+m[6], 1000)
	} else {
		s.bits = 8 * parseScaled(m[5]+m[6], 1024) // iperf3 prints bytes in powers of 1024
	}
	rest := m[8]
	if side := sideWord.FindStringSubmatchIndex(rest); side != nil {
		s.side, rest = rest[side[2]:side[3]], rest[:side[0]]
	}
	if d := datagramPart.FindStringSubmatch(rest); d != nil {
		lost, _ := strconv.ParseFloat(d[2], 64)
		s.udp, s.jitter, s.lost, s.datagrams = true, number(d[1])/1e3, lost, number(d[3])
	} else if n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 53); err == nil {
		s.retransmits = float64(n)
	}
	switch {
	case !(s.seconds > 0 && s.lost >= 0 && s.lost <= s.datagrams):
		return nil
	case s.side != "":
		return []flowSummary{s}
	case both && s.datagrams > 0:
		sent, received := s, s
		sent.side, sent.jitter, sent.lost = "sender", 0, 0
		received.side, received.derived, received.bits = "receiver", true, s.bits*(1-s.lost/s.datagrams)
		return []flowSummary{sent, received}
	}
	return nil
}

// summariesBySent returns the indices of the lines that are summaries because iperf 3.0 and 3.1 state below them, or
// above the sum of all flows, how many datagrams were sent.
func summariesBySent(lines []string) map[int]bool {
	found := map[int]bool{}
	last := -1 // the last line with text
	for i, line := range lines {
		switch {
		case strings.TrimSpace(line) == "":
			continue
		case datagramLine.MatchString(line) && last >= 0:
			found[last] = true
		case last >= 0 && datagramLine.MatchString(lines[last]) && strings.Contains(line, "[SUM]"):
			found[i] = true
		}
		last = i
	}
	return found
}

// An iperf3Test is the output of one iperf3 client or server.
type iperf3Test struct {
	line      int      // number of the command's line, or of the first line of output
	args      []string // of the command; nil if it is missing
	connected bool     // the output begins with the client's connection
	reverse   bool     // the output states that the server sends
	server    bool     // the output is a server's
	text      []string
	summaries []flowSummary
	interim   []int // numbers of rows of intervals
	failure   string
}

// empty reports whether nothing was printed about a test.
func (t iperf3Test) empty() bool {
	return len(t.summaries) == 0 && len(t.interim) == 0 && t.failure == ""
}

// cut reports whether the summaries of the test are missing.
func (t iperf3Test) cut() bool { return len(t.summaries) == 0 && t.failure == "" }

// has reports whether the test has a summary of the same flow and side.
func (t iperf3Test) has(s flowSummary) bool {
	return slices.ContainsFunc(t.summaries, func(x flowSummary) bool {
		return x.flow == s.flow && x.role == s.role && x.side == s.side && x.ofServer == s.ofServer
	})
}

// isOfAnother reports whether a summary is of a test of another duration.
func (t iperf3Test) isOfAnother(s flowSummary) bool {
	const late = 2 // seconds that a side may end after the other
	return len(t.summaries) > 0 && math.Abs(s.seconds-t.summaries[0].seconds) > late+t.summaries[0].seconds/5
}

// Lines of iperf3 beside its rows. A server that is ended says so after its tests, which is no failure of theirs.
var (
	connectingLine = regexp.MustCompile(`\bConnecting to host \S+, port \d+`)
	reverseLine    = regexp.MustCompile(`\bReverse mode, remote host \S+ is sending`)
	serverLine     = regexp.MustCompile(`\bServer listening on \d+|\bAccepted connection from `)
	serverOutput   = regexp.MustCompile(`\bServer output:\s*$`) // of --get-server-output
	failureLine    = regexp.MustCompile(`\biperf3: (?:parameter )?error - (.*\S)`)
	interruptLine  = regexp.MustCompile(`\biperf3: (interrupt - the client has terminated.*)`)
)

// iperf3Tests splits a text into tests: at commands, at new connections, and where the summary of the same flow
// repeats. It also returns the lines with a rate that belong to no test. first is the number of the first line.
func iperf3Tests(lines []string, first int) (all []iperf3Test, unread []UnreadLine) {
	var t iperf3Test
	inServerOutput := false
	begin := func(line int, args []string) {
		if !t.empty() {
			all = append(all, t.separate()...)
		}
		t, inServerOutput = iperf3Test{line: line, args: args}, false
	}
	bySent := summariesBySent(lines)
	for i, line := range lines {
		number := first + i
		args := clientArgs(line, "iperf3", "-c")
		found := parseSummary(line, bySent[i])
		connecting, serves := connectingLine.MatchString(line), !inServerOutput && serverLine.MatchString(line)
		failure := failureLine.FindStringSubmatch(line)
		for j := range found {
			found[j].line, found[j].ofServer = number, found[j].ofServer || inServerOutput && found[j].role == ""
		}
		over := !t.empty() && (connecting || serves) || len(t.summaries) > 0 && failure != nil ||
			slices.ContainsFunc(found, t.isOfAnother)
		interim := len(found) == 0 && interimRow.MatchString(line)
		switch starts := len(found) > 0 || interim || connecting || serves || failure != nil; {
		case args != nil, over, slices.ContainsFunc(found, t.has), t.line == 0 && starts:
			begin(number, args)
		}
		switch {
		case len(found) > 0:
			t.summaries = append(t.summaries, found...)
		case interim && sideWord.MatchString(line):
			unread = append(unread, UnreadLine{number, "impossible numbers"})
		case interim:
			t.interim = append(t.interim, number)
		case failure != nil:
			t.failure = failure[1]
		case interruptLine.MatchString(line) && t.line > 0:
			t.failure = interruptLine.FindStringSubmatch(line)[1]
		case serverOutput.MatchString(line):
			inServerOutput = true
		case strings.Contains(line, "iperf Done."):
			inServerOutput = false
		case rateText.MatchString(line):
			unread = append(unread, UnreadLine{number, "not a row of iperf3"})
		}
		t.connected, t.server = t.connected || connecting, t.server || serves
		t.reverse = t.reverse || reverseLine.MatchString(line)
		if t.line > 0 {
			t.text = append(t.text, line)
		}
	}
	begin(0, nil)
	return all, unread
}

// separate splits a test at each new flow if they cannot be flows of one test: iperf3 prints the sum of several.
func (t iperf3Test) separate() []iperf3Test {
	sum := func(s flowSummary) bool { return s.flow == "SUM" || s.role != "" || s.ofServer }
	if n, _ := strconv.Atoi(option(t.args, "-P", "--parallel")); n > 1 || slices.ContainsFunc(t.summaries, sum) {
		return []iperf3Test{t}
	}
	var parts []iperf3Test
	for i, s := range t.summaries {
		if i > 0 && s.flow == t.summaries[i-1].flow {
			last := &parts[len(parts)-1]
			last.summaries = append(last.summaries, s)
			continue
		}
		part := t
		if i > 0 {
			before, own := &parts[len(parts)-1], s.line-t.line
			part = iperf3Test{line: s.line, server: t.server, text: t.text[own:]}
			before.text = before.text[:s.line-before.line]
		}
		part.summaries = []flowSummary{s}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return []iperf3Test{t}
	}
	return parts
}

// direction returns the direction of a flow of --bidir, as the client calls it; empty without --bidir.
func (s flowSummary) direction() string {
	switch s.role {
	case "TX-C", "RX-S":
		return "TX"
	case "RX-C", "TX-S":
		return "RX"
	}
	return ""
}

// directions returns the directions of the test; one without a name if it has no --bidir.
func (t iperf3Test) directions() []string {
	if slices.ContainsFunc(t.summaries, func(s flowSummary) bool { return s.role != "" }) {
		return []string{"TX", "RX"}
	}
	return []string{""}
}

// flows returns the summaries of single flows of one side, "sender" or "receiver", in one direction. The server's are
// further views of the same flows and count only where the client has none.
func (t iperf3Test) flows(side, direction string) (flows, sums []flowSummary) {
	for _, ofServer := range []bool{false, true} {
		for _, s := range t.summaries {
			switch {
			case s.side != side || s.direction() != direction || s.ofServer != ofServer:
			case s.flow == "SUM":
				sums = append(sums, s)
			default:
				flows = append(flows, s)
			}
		}
		if len(flows)+len(sums) > 0 {
			break
		}
	}
	return flows, sums
}

// side returns the summaries of one side in all directions: the sums of all flows where there are any, else one per
// flow. whole is false if a direction has none.
func (t iperf3Test) side(name string) (list []flowSummary, whole bool) {
	whole = true
	for _, direction := range t.directions() {
		flows, sums := t.flows(name, direction)
		if len(sums) > 0 {
			flows = sums
		}
		list, whole = append(list, flows...), whole && len(flows) > 0
	}
	return list, whole
}

// unread returns the figures of the test that its record does not have.
func (t iperf3Test) unread() (list []UnreadLine) {
	if len(t.summaries) == 0 {
		for _, line := range t.interim {
			list = append(list, UnreadLine{line, "an interval of a test whose lines of sender and receiver are missing"})
		}
	}
	if sent, whole := t.side("sender"); !whole {
		for _, s := range sent {
			list = append(list, UnreadLine{s.line, "what was sent in one of two directions"})
		}
	}
	return list
}

// total sums a quantity over summaries.
func total(summaries []flowSummary, quantity func(flowSummary) float64) (sum float64) {
	for _, s := range summaries {
		sum += quantity(s)
	}
	return sum
}

func (s flowSummary) rate() float64         { return s.bits }
func (s flowSummary) datagramRate() float64 { return s.datagrams / s.seconds }

const missingSummary = "the lines of sender and receiver are missing: the test was interrupted, or its output cut"

// record converts the test to a record. A test that failed, or whose summaries are missing, is invalid.
func (t iperf3Test) record() Record {
	r := Record{Tool: "iperf3", Place: fmt.Sprintf("line %d", t.line), Text: []byte(strings.Join(t.text, "\n") + "\n")}
	r.Facts = []result.Fact{{Name: "tool.version", Value: result.Unknown}}
	switch {
	case t.failure != "":
		r.Invalid = []result.Warning{{Code: result.ToolReports, Text: "iperf3 says: " + t.failure}}
	case len(t.summaries) == 0:
		r.Invalid = []result.Warning{{Code: result.StoppedEarly,
			Text: missingSummary}}
	}
	if len(t.summaries) > 0 || t.args != nil {
		w := t.workload()
		r.Workload = w.name()
		r.Values = t.measured(w.Kind.UDP())
		r.Facts = append(r.Facts, w.facts()...)
	}
	if len(t.summaries) > 0 {
		r.Window = t.summaries[0].seconds
	}
	if slices.ContainsFunc(t.summaries, func(s flowSummary) bool { return s.derived }) {
		r.Warnings = []result.Warning{{Code: result.DerivedFromPeer,
			Text: "this version prints no sum of what arrived; it is taken from the datagrams that were lost"}}
	}
	if len(t.args) > 0 {
		r.Facts = append(r.Facts, result.Fact{Name: "command", Value: "iperf3 " + strings.Join(t.args, " ")})
	}
	return r
}

// measured returns the values in the summaries of both sides. Those of both directions together need both.
func (t iperf3Test) measured(udp bool) []result.Value {
	var v values
	received, arrived := t.side("receiver")
	sent, known := t.side("sender")
	// A server of some versions prints 0 for what the client sent.
	known = known && (total(sent, flowSummary.rate) > 0 || len(received) == 0)
	if arrived {
		v.add(metric.Throughput, total(received, flowSummary.rate))
	}
	if known {
		v.add(metric.ThroughputSent, total(sent, flowSummary.rate))
	}
	for _, s := range received {
		switch s.direction() {
		case "TX":
			v.add(metric.ThroughputTX, s.bits)
		case "RX":
			v.add(metric.ThroughputRX, s.bits)
		}
	}
	if !udp {
		if known && !slices.ContainsFunc(sent, func(s flowSummary) bool { return s.retransmits < 0 }) {
			v.add(metric.Retransmits, total(sent, func(s flowSummary) float64 { return s.retransmits }))
		}
		return v
	}
	if all := total(received, func(s flowSummary) float64 { return s.datagrams }); arrived && all > 0 {
		lost := func(s flowSummary) float64 { return s.lost }
		v.add(metric.Loss, total(received, lost)/all)
		v.add(metric.Rate, total(received, func(s flowSummary) float64 { return (s.datagrams - s.lost) / s.seconds }))
		v.add(metric.Jitter, total(received, func(s flowSummary) float64 { return s.jitter })/float64(len(received)))
	}
	if offered := total(sent, flowSummary.datagramRate); known && offered > 0 {
		v.add(metric.Offered, offered)
	}
	return v
}

// Properties of iperf3's rates and of those who do not reach them.
const (
	// unpacedBelow is the fraction of the rate requested by -b below which a sender counts as unpaced: it sent as fast as
	// it could.
	unpacedBelow = 0.95
	defaultPace  = 1 << 20 // bit/s of a flow of UDP without -b
)

// workload derives what was measured from the command and the summaries.
func (t iperf3Test) workload() stream {
	w := stream{Spec: netload.Spec{Kind: netload.TCPStream, Direction: t.directionOf()}, server: t.server}
	w.directionUnknown = w.Direction == netload.Forward && t.args == nil && !t.connected && !t.server
	w.Flows, w.flowsUnknown = t.countFlows()
	if size := parseScaled(option(t.args, "-l", "--length"), 1024); size < netload.MaxSize {
		w.Size = int(size)
	}
	if bytes := parseScaled(option(t.args, "-n", "--bytes"), 1024); bytes > 0 {
		w.amount = "bytes=" + strconv.FormatFloat(bytes, 'f', 0, 64)
	} else if blocks := parseScaled(option(t.args, "-k", "--blockcount"), 1024); blocks > 0 {
		w.amount = "blocks=" + strconv.FormatFloat(blocks, 'f', 0, 64)
	}
	if slices.Contains(t.args, "-u") || slices.Contains(t.args, "--udp") ||
		slices.ContainsFunc(t.summaries, func(s flowSummary) bool { return s.udp }) {
		t.setPace(&w)
	}
	return w
}

// directionOf returns the direction, forward if nothing states another.
func (t iperf3Test) directionOf() netload.Direction {
	_, received := t.side("receiver")
	_, sent := t.side("sender")
	switch {
	case len(t.directions()) > 1 || slices.Contains(t.args, "--bidir"):
		return netload.Both
	case t.reverse || slices.Contains(t.args, "-R") || slices.Contains(t.args, "--reverse"):
		return netload.Reverse
	case t.server && sent && !received:
		return netload.Reverse
	}
	return netload.Forward
}

// countFlows returns the number of flows: that of the command, or of the flows with summaries. It is unknown if there
// are only sums.
func (t iperf3Test) countFlows() (n int, unknown bool) {
	n, _ = strconv.Atoi(option(t.args, "-P", "--parallel"))
	given := n > 0
	sum := false
	for _, direction := range t.directions() {
		for _, side := range []string{"sender", "receiver"} {
			flows, sums := t.flows(side, direction)
			n, sum = max(n, len(flows)), sum || len(sums) > 0
		}
	}
	return max(n, 1), sum && !given && n == 0
}

// setPace makes the workload one of datagrams, with the rate that the command asks for.
func (t iperf3Test) setPace(w *stream) {
	w.Kind = netload.UDPStream
	if t.args == nil {
		w.paceUnknown = true
		return
	}
	pace, _, _ := strings.Cut(option(t.args, "-b", "--bitrate", "--bandwidth"), "/")
	requested := parseScaled(pace, 1000) * float64(w.Flows)
	if pace == "" {
		requested = defaultPace * float64(w.Flows)
	}
	all := requested
	if w.Direction == netload.Both {
		all *= 2
	}
	sent, _ := t.side("sender")
	switch reached := total(sent, flowSummary.rate); {
	case requested == 0, reached > 0 && reached < unpacedBelow*all:
		w.Kind = netload.UDPUnpaced
	case w.Size > 0:
		w.Rate = iperf3.Datagrams(requested, w.Size)
	default:
		w.BitRate = requested
	}
}

// A stream is what iperf3 measured, as far as its output states it.
type stream struct {
	netload.Spec
	amount                                      string // "bytes=10240" or "blocks=10" of -n and -k; empty: for a time
	paceUnknown, flowsUnknown, directionUnknown bool
	server                                      bool
}

// name returns Knotmeter's name of the workload, or only its kind if there is no such workload. A name of another kind
// claims nothing that is not known: "udp" no pace, "tcp-streams" no number of flows, "tcp-transfer" no time.
func (w stream) name() string {
	spec := w.Spec
	if w.paceUnknown {
		spec.Kind = netload.UDPUnpaced // has no rate in its name
	}
	if _, err := spec.Resolved(); err != nil {
		return string(w.Kind)
	}
	kind, options, _ := strings.Cut(spec.Name(), ":")
	switch {
	case w.paceUnknown && w.flowsUnknown:
		kind = "udp-flows"
	case w.paceUnknown:
		kind = "udp"
	case w.flowsUnknown:
		kind = strings.Replace(kind, "-stream", "-streams", 1)
	}
	var list []string
	if w.amount != "" {
		kind, list = strings.Replace(kind, "-stream", "-transfer", 1), []string{w.amount}
	}
	if options != "" {
		list = append(list, options)
	}
	if len(list) == 0 {
		return kind
	}
	return kind + ":" + strings.Join(list, ",")
}

// facts returns facts about what is known of the workload, and what is not.
func (w stream) facts() (facts []result.Fact) {
	add := func(applies bool, name, value string) {
		if applies {
			facts = append(facts, result.Fact{Name: name, Value: value})
		}
	}
	add(w.Kind == netload.UDPUnpaced, network.Unpaced.Name, network.Unpaced.Value)
	add(w.paceUnknown, network.Unpaced.Name, result.Unknown)
	add(w.flowsUnknown, "flows", result.Unknown)
	add(w.Direction == netload.Both, "direction", string(netload.Both))
	add(w.directionUnknown, "direction", result.Unknown)
	return facts
}
