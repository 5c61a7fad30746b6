package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/iperf3"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Printed is a measurement that a tool printed on a terminal.
type Printed struct {
	Record
	Line int // where it begins
}

// Console finds what iperf3 and netperf printed on a terminal, as people paste it into documents: the command, and what
// came of it. A command alone is nothing. First is the number of the first line. An error is about something of
// theirs that cannot be read, and Is [ErrFormat].
func Console(name string, lines []string, first int) (found []Printed, errs []error) {
	for _, t := range iperf3Tests(lines, first) {
		found = append(found, Printed{t.record(), t.line})
	}
	for _, s := range netperfSections(name, strings.Join(lines, "\n"), first) {
		if s.banner == "" {
			continue // KEY=value of anything
		}
		records, err := s.read()
		if err != nil {
			errs = append(errs, err)
		}
		for _, r := range records {
			found = append(found, Printed{r, s.line})
		}
	}
	slices.SortStableFunc(found, func(a, b Printed) int { return a.Line - b.Line })
	return found, errs
}

// call is the arguments of a program in a line such as "kubectl exec client -- iperf3 -c server"; nil if it is none.
// Of those that tell a client from a word in a sentence, one has to be there.
func call(line, program, client string) []string {
	words := strings.Fields(line)
	for i := len(words) - 1; i >= 0; i-- {
		if words[i] == program || strings.HasSuffix(words[i], "/"+program) {
			if args := words[i+1:]; slices.Contains(args, client) {
				return args
			}
			return nil
		}
	}
	return nil
}

// option is the value of the first of these options: "-P 4", "-P4" or "--parallel=4".
func option(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			long := strings.HasPrefix(name, "--")
			switch rest, is := strings.CutPrefix(arg, name); {
			case !is || long && rest != "" && !strings.HasPrefix(rest, "="):
			case rest != "":
				return strings.TrimPrefix(rest, "=")
			case i+1 < len(args):
				return args[i+1]
			}
		}
	}
	return ""
}

// scaled reads a number with iperf3's suffix: those of sizes are powers of 1024, those of rates of 1000.
func scaled(text string, base float64) float64 {
	factor := 1.0
	if n := len(text) - 1; n > 0 {
		if power := strings.IndexByte("KMGT", text[n]&^0x20); power >= 0 {
			text = text[:n]
			for range power + 1 {
				factor *= base
			}
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) || !usable(v*factor) {
		return 0
	}
	return v * factor
}

// iperf3 ends a test with a line of each flow, and of all, for what was sent and what was received:
//
//	[SUM]   0.00-30.00  sec  26.5 GBytes  7.60 Gbits/sec                   receiver
//	[  5][RX-C]   0.00-30.00  sec  8.46 GBytes  2.42 Gbits/sec  359             sender
//	[  5]   0.00-30.00  sec  5.21 GBytes  1.49 Gbits/sec  0.009 ms  141431/4143607 (3.4%)  receiver
var (
	summaryLine = regexp.MustCompile(`^\s*\[\s*(SUM|\d+)\](?:\[(TX-C|RX-C|TX-S|RX-S)\])?\s+` +
		`(\d+(?:\.\d+)?)\s*-\s*(\d+(?:\.\d+)?)\s+sec\s+\d+(?:\.\d+)?\s+[KMGT]?Bytes\s+` +
		`(\d+(?:\.\d+)?)\s+([KMGT]?)bits/sec\s*(.*?)\s*(sender|receiver)\s*$`)
	datagramPart = regexp.MustCompile(`^(\d+(?:\.\d+)?) ms\s+(\d+)/(\d+) \(`)
)

// A summaryRow is such a line.
type summaryRow struct {
	flow, role, side string // 5 or SUM; TX-C with --bidir; sender or receiver
	seconds, bits    float64
	retransmits      float64 // -1: not there
	udp              bool
	jitter           float64 // seconds
	lost, datagrams  float64
}

// summaryOf reads a line; false if it is another one.
func summaryOf(line string) (s summaryRow, is bool) {
	m := summaryLine.FindStringSubmatch(line)
	if m == nil {
		return s, false
	}
	number := func(text string) float64 { return scaled(text, 1) }
	s = summaryRow{flow: m[1], role: m[2], side: m[8], seconds: number(m[4]) - number(m[3]),
		bits: scaled(m[5]+m[6], 1000), retransmits: -1}
	if d := datagramPart.FindStringSubmatch(m[7]); d != nil {
		s.udp, s.jitter, s.lost, s.datagrams = true, number(d[1])/1e3, number(d[2]), number(d[3])
	} else if n, err := strconv.ParseUint(m[7], 10, 53); err == nil {
		s.retransmits = float64(n)
	}
	return s, s.seconds > 0 && s.lost <= s.datagrams
}

// An iperf3Test is what one client printed.
type iperf3Test struct {
	line      int // of the command, or of what else it begins with
	args      []string
	text      []string
	summaries []summaryRow
}

// iperf3Tests cuts a text at the commands, and where a line comes for the second time.
func iperf3Tests(lines []string, first int) []iperf3Test {
	var all []iperf3Test
	var open iperf3Test
	begin := func(line int, args []string) {
		if len(open.summaries) > 0 {
			all = append(all, open)
		}
		open = iperf3Test{line: line, args: args}
	}
	for i, line := range lines {
		args := call(line, "iperf3", "-c")
		s, is := summaryOf(line)
		again := is && slices.ContainsFunc(open.summaries, func(x summaryRow) bool {
			return x.flow == s.flow && x.role == s.role && x.side == s.side
		})
		hello := strings.HasPrefix(line, "Connecting to host ") && len(open.summaries) > 0
		if args != nil || again || hello || open.line == 0 && is {
			begin(first+i, args)
		}
		if open.line > 0 {
			open.text = append(open.text, line)
		}
		if is {
			open.summaries = append(open.summaries, s)
		}
	}
	begin(0, nil)
	return all
}

// side are the lines of one side: those of all flows where there are such, else those of each.
func (t iperf3Test) side(name string) []summaryRow {
	var sums, flows []summaryRow
	for _, s := range t.summaries {
		switch {
		case s.side != name:
		case s.flow == "SUM":
			sums = append(sums, s)
		default:
			flows = append(flows, s)
		}
	}
	if len(sums) > 0 {
		return sums
	}
	return flows
}

// total adds up a quantity of lines.
func total(lines []summaryRow, of func(summaryRow) float64) (sum float64) {
	for _, s := range lines {
		sum += of(s)
	}
	return sum
}

func (s summaryRow) rate() float64      { return s.bits }
func (s summaryRow) perSecond() float64 { return s.datagrams / s.seconds }

// record makes a record of the test.
func (t iperf3Test) record() Record {
	received, sent := t.side("receiver"), t.side("sender")
	w := t.workload(total(sent, summaryRow.rate))
	r := Record{Workload: t.name(w), Tool: "iperf3", Place: fmt.Sprintf("line %d", t.line),
		Text: []byte(strings.Join(t.text, "\n") + "\n")}
	r.Window = t.summaries[0].seconds
	r.Values = t.measured(received, sent, w.Kind.UDP())
	r.Facts = []result.Fact{{Name: "tool.version", Value: result.Unknown}}
	if w.Kind == network.UDPUnpaced {
		r.Facts = append(r.Facts, network.Unpaced)
	}
	if w.Direction == network.Both {
		r.Facts = append(r.Facts, result.Fact{Name: "direction", Value: string(network.Both)})
	}
	if len(t.args) > 0 {
		r.Facts = append(r.Facts, result.Fact{Name: "command", Value: "iperf3 " + strings.Join(t.args, " ")})
	}
	return r
}

// measured are the values of both sides' lines.
func (t iperf3Test) measured(received, sent []summaryRow, udp bool) []result.Value {
	var v values
	if len(received) > 0 {
		v.add(metric.Throughput, total(received, summaryRow.rate))
	}
	if len(sent) > 0 {
		v.add(metric.ThroughputSent, total(sent, summaryRow.rate))
	}
	for _, s := range received {
		switch s.role {
		case "TX-C":
			v.add(metric.ThroughputTX, s.bits)
		case "RX-C":
			v.add(metric.ThroughputRX, s.bits)
		}
	}
	if !udp {
		if !slices.ContainsFunc(sent, func(s summaryRow) bool { return s.retransmits < 0 }) && len(sent) > 0 {
			v.add(metric.Retransmits, total(sent, func(s summaryRow) float64 { return s.retransmits }))
		}
		return v
	}
	if all := total(received, func(s summaryRow) float64 { return s.datagrams }); all > 0 {
		lost := func(s summaryRow) float64 { return s.lost }
		v.add(metric.Loss, total(received, lost)/all)
		v.add(metric.Rate, total(received, func(s summaryRow) float64 { return (s.datagrams - s.lost) / s.seconds }))
		v.add(metric.Jitter, total(received, func(s summaryRow) float64 { return s.jitter })/float64(len(received)))
	}
	if offered := total(sent, summaryRow.perSecond); offered > 0 {
		v.add(metric.Offered, offered)
	}
	return v
}

// unreached is how much of the rate of -b a sender reaches at most that sends as fast as it can.
const unreached = 0.95

// workload is what the command and the lines say. A rate that the sender did not reach is no pace.
func (t iperf3Test) workload(sent float64) network.Spec {
	w := network.Spec{Kind: network.TCPStream, Flows: 1, Direction: network.Forward}
	if n, err := strconv.Atoi(option(t.args, "-P", "--parallel")); err == nil {
		w.Flows = n
	}
	if size := scaled(option(t.args, "-l", "--length"), 1024); size < network.MaxSize {
		w.Size = int(size)
	}
	switch {
	case slices.ContainsFunc(t.summaries, func(s summaryRow) bool { return s.role != "" }):
		w.Direction = network.Both
	case slices.Contains(t.args, "-R") || slices.Contains(t.args, "--reverse"):
		w.Direction = network.Reverse
	}
	if slices.ContainsFunc(t.summaries, func(s summaryRow) bool { return s.udp }) {
		pace, _, _ := strings.Cut(option(t.args, "-b", "--bitrate", "--bandwidth"), "/")
		each := scaled(pace, 1000)
		w.Kind = network.UDPStream
		switch asked := each * float64(w.Flows); {
		case pace == "0", sent > 0 && sent < unreached*asked:
			w.Kind = network.UDPUnpaced
		case w.Size > 0:
			w.Rate = iperf3.Datagrams(asked, w.Size)
		}
	}
	return w
}

// name is the workload's: ours where it is the same thing. Without the size of its datagrams a pace is none of ours.
func (t iperf3Test) name(w network.Spec) string {
	if w.Kind == network.UDPStream && w.Rate == 0 {
		return "udp-stream-paced"
	}
	if _, err := w.Resolved(); err != nil {
		return string(w.Kind)
	}
	return w.String()
}

// netperfKinds are the tests by what -t calls them, as the banners name them.
var netperfKinds = map[string]string{
	"": "TCP STREAM", "TCP_STREAM": "TCP STREAM", "TCP_MAERTS": "TCP MAERTS", "TCP_SENDFILE": "TCP SENDFILE",
	"TCP_RR": "TCP REQUEST/RESPONSE", "TCP_CRR": "TCP CONNECT/REQUEST/RESPONSE", "TCP_CC": "TCP CONNECT/CLOSE",
	"UDP_STREAM": "UDP STREAM", "UDP_RR": "UDP REQUEST/RESPONSE",
}

// netperfCall begins a section at a command of netperf, which says what the output below it may leave out; false if
// the line is none.
func netperfCall(name string, number int, line string) (section, bool) {
	args := call(line, "netperf", "-H")
	kind, known := netperfKinds[strings.ToUpper(option(args, "-t"))]
	if args == nil || !known {
		return section{}, false
	}
	return section{name: name, line: number, kind: kind, banner: line, args: args}, true
}

// told adds what the command says and the output does not: sizes, of which one is of both request and response, and
// the time.
func (o *output) told() {
	add := func(key, value string) {
		if _, has := o.values[key]; !has && value != "" {
			o.values[key] = value
		}
	}
	if o.args == nil {
		return
	}
	general, special := o.args, []string(nil)
	if i := slices.Index(o.args, "--"); i >= 0 {
		general, special = o.args[:i], o.args[i+1:]
	}
	if !o.stream() {
		request, response, two := strings.Cut(option(special, "-r"), ",")
		if !two {
			response = request
		}
		add("REQUEST_SIZE", size(request, "1"))
		add("RESPONSE_SIZE", size(response, "1"))
	} else if send, _, _ := strings.Cut(option(special, "-m"), ","); send != "" {
		add("LOCAL_SEND_SIZE", size(send, ""))
	}
	if d, err := time.ParseDuration(option(general, "-l") + "s"); err == nil && d > 0 {
		add("ELAPSED_TIME", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
	}
}

// size is one that netperf understands, in bytes; otherwise where there is none.
func size(text, otherwise string) string {
	if n := scaled(text, 1024); n >= 1 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return otherwise
}
