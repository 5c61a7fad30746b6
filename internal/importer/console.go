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
	"github.com/knotmeter/knotmeter/internal/load/netload"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// A Printed is a measurement that a tool printed on a terminal.
type Printed struct {
	Record
	Line int // number of its first line
}

// Console finds terminal output of iperf3 and netperf as users paste it into documents: a command and its results. A
// command without results is ignored. first is the number of the first line. Output of these tools that cannot be read
// gives an error, which wraps [ErrFormat].
func Console(name string, lines []string, first int) (found []Printed, errs []error) {
	for _, t := range iperf3Tests(lines, first) {
		found = append(found, Printed{t.record(), t.line})
	}
	for _, s := range netperfSections(name, strings.Join(lines, "\n"), first) {
		if s.banner == "" {
			continue // without a banner, KEY=value lines may come from any program
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

// clientArgs returns the arguments of a program in a line such as "kubectl exec client -- iperf3 -c server"; nil if
// there is no such command. The arguments must contain clientFlag, which distinguishes a command from a sentence.
func clientArgs(line, program, clientFlag string) []string {
	words := strings.Fields(line)
	for i := len(words) - 1; i >= 0; i-- {
		if words[i] == program || strings.HasSuffix(words[i], "/"+program) {
			if args := words[i+1:]; slices.Contains(args, clientFlag) {
				return args
			}
			return nil
		}
	}
	return nil
}

// option returns the value of the first argument that is one of these options, as in "-P 4", "-P4" or "--parallel=4";
// empty if there is none.
func option(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			long := strings.HasPrefix(name, "--")
			switch rest, found := strings.CutPrefix(arg, name); {
			case !found || long && rest != "" && !strings.HasPrefix(rest, "="):
			case rest != "":
				return strings.TrimPrefix(rest, "=")
			case i+1 < len(args):
				return args[i+1]
			}
		}
	}
	return ""
}

// parseScaled parses a number with iperf3's suffix K, M, G or T, a power of base: 1024 for sizes, 1000 for rates. It
// returns 0 for a text that is no usable number.
func parseScaled(text string, base float64) float64 {
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

// iperf3 ends a test with summary lines for each flow and for all of them, of what was sent and what was received:
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

// A summaryRow is a parsed summary line.
type summaryRow struct {
	flow, role, side string  // "5" or "SUM"; such as "TX-C" with --bidir, else empty; "sender" or "receiver"
	seconds, bits    float64 // length of the interval; bits per second
	retransmits      float64 // -1: not reported
	udp              bool
	jitter           float64 // seconds
	lost, datagrams  float64
}

// parseSummary parses a summary line. It returns false for other lines and for impossible numbers.
func parseSummary(line string) (s summaryRow, ok bool) {
	m := summaryLine.FindStringSubmatch(line)
	if m == nil {
		return s, false
	}
	number := func(text string) float64 { return parseScaled(text, 1) }
	s = summaryRow{flow: m[1], role: m[2], side: m[8], seconds: number(m[4]) - number(m[3]),
		bits: parseScaled(m[5]+m[6], 1000), retransmits: -1}
	if d := datagramPart.FindStringSubmatch(m[7]); d != nil {
		s.udp, s.jitter, s.lost, s.datagrams = true, number(d[1])/1e3, number(d[2]), number(d[3])
	} else if n, err := strconv.ParseUint(m[7], 10, 53); err == nil {
		s.retransmits = float64(n)
	}
	return s, s.seconds > 0 && s.lost <= s.datagrams
}

// An iperf3Test is the output of one iperf3 client.
type iperf3Test struct {
	line      int      // number of the command's line, or of the first line of output
	args      []string // of the command; nil if it is missing
	text      []string
	summaries []summaryRow
}

// iperf3Tests splits a text into tests: at commands, at new connections, and where the summary of the same flow
// repeats.
func iperf3Tests(lines []string, first int) []iperf3Test {
	var all []iperf3Test
	var current iperf3Test
	begin := func(line int, args []string) {
		if len(current.summaries) > 0 {
			all = append(all, current)
		}
		current = iperf3Test{line: line, args: args}
	}
	for i, line := range lines {
		args := clientArgs(line, "iperf3", "-c")
		s, isSummary := parseSummary(line)
		repeated := isSummary && slices.ContainsFunc(current.summaries, func(x summaryRow) bool {
			return x.flow == s.flow && x.role == s.role && x.side == s.side
		})
		reconnected := strings.HasPrefix(line, "Connecting to host ") && len(current.summaries) > 0
		if args != nil || repeated || reconnected || current.line == 0 && isSummary {
			begin(first+i, args)
		}
		if current.line > 0 {
			current.text = append(current.text, line)
		}
		if isSummary {
			current.summaries = append(current.summaries, s)
		}
	}
	begin(0, nil)
	return all
}

// side returns the summaries of one side, "sender" or "receiver": the sums of all flows if there are any, else one per
// flow.
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

// total sums a quantity over summaries.
func total(summaries []summaryRow, quantity func(summaryRow) float64) (sum float64) {
	for _, s := range summaries {
		sum += quantity(s)
	}
	return sum
}

func (s summaryRow) rate() float64         { return s.bits }
func (s summaryRow) datagramRate() float64 { return s.datagrams / s.seconds }

// record converts the test to a record.
func (t iperf3Test) record() Record {
	received, sent := t.side("receiver"), t.side("sender")
	w := t.workload(total(sent, summaryRow.rate))
	r := Record{Workload: t.workloadName(w), Tool: "iperf3", Place: fmt.Sprintf("line %d", t.line),
		Text: []byte(strings.Join(t.text, "\n") + "\n")}
	r.Window = t.summaries[0].seconds
	r.Values = t.measured(received, sent, w.Kind.UDP())
	r.Facts = []result.Fact{{Name: "tool.version", Value: result.Unknown}}
	if w.Kind == netload.UDPUnpaced {
		r.Facts = append(r.Facts, network.Unpaced)
	}
	if w.Direction == netload.Both {
		r.Facts = append(r.Facts, result.Fact{Name: "direction", Value: string(netload.Both)})
	}
	if len(t.args) > 0 {
		r.Facts = append(r.Facts, result.Fact{Name: "command", Value: "iperf3 " + strings.Join(t.args, " ")})
	}
	return r
}

// measured returns the values in the summaries of both sides.
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
	if offered := total(sent, summaryRow.datagramRate); offered > 0 {
		v.add(metric.Offered, offered)
	}
	return v
}

// unpacedBelow is the fraction of the rate requested by -b below which a sender counts as unpaced: it sent as fast as
// it could.
const unpacedBelow = 0.95

// workload derives the workload from the command and the summaries; sent is the sender's rate in bit/s.
func (t iperf3Test) workload(sent float64) netload.Spec {
	w := netload.Spec{Kind: netload.TCPStream, Flows: 1, Direction: netload.Forward}
	if n, err := strconv.Atoi(option(t.args, "-P", "--parallel")); err == nil {
		w.Flows = n
	}
	if size := parseScaled(option(t.args, "-l", "--length"), 1024); size < netload.MaxSize {
		w.Size = int(size)
	}
	switch {
	case slices.ContainsFunc(t.summaries, func(s summaryRow) bool { return s.role != "" }):
		w.Direction = netload.Both
	case slices.Contains(t.args, "-R") || slices.Contains(t.args, "--reverse"):
		w.Direction = netload.Reverse
	}
	if slices.ContainsFunc(t.summaries, func(s summaryRow) bool { return s.udp }) {
		pace, _, _ := strings.Cut(option(t.args, "-b", "--bitrate", "--bandwidth"), "/")
		perFlow := parseScaled(pace, 1000)
		w.Kind = netload.UDPStream
		switch requested := perFlow * float64(w.Flows); {
		case pace == "0", sent > 0 && sent < unpacedBelow*requested:
			w.Kind = netload.UDPUnpaced
		case w.Size > 0:
			w.Rate = iperf3.Datagrams(requested, w.Size)
		}
	}
	return w
}

// workloadName returns Knotmeter's name of the workload, or only its kind if there is no such workload. A pace of
// datagrams of unknown size cannot be named.
func (t iperf3Test) workloadName(w netload.Spec) string {
	if w.Kind == netload.UDPStream && w.Rate == 0 {
		return "udp-stream-paced"
	}
	if _, err := w.Resolved(); err != nil {
		return string(w.Kind)
	}
	return network.Name(w)
}

// netperfKinds maps arguments of -t to the names of tests in banners.
var netperfKinds = map[string]string{
	"": "TCP STREAM", "TCP_STREAM": "TCP STREAM", "TCP_MAERTS": "TCP MAERTS", "TCP_SENDFILE": "TCP SENDFILE",
	"TCP_RR": "TCP REQUEST/RESPONSE", "TCP_CRR": "TCP CONNECT/REQUEST/RESPONSE", "TCP_CC": "TCP CONNECT/CLOSE",
	"UDP_STREAM": "UDP STREAM", "UDP_RR": "UDP REQUEST/RESPONSE",
}

// netperfCommand starts a section at a netperf command, whose arguments complete the output below it. It returns false
// for other lines.
func netperfCommand(name string, number int, line string) (section, bool) {
	args := clientArgs(line, "netperf", "-H")
	kind, known := netperfKinds[strings.ToUpper(option(args, "-t"))]
	if args == nil || !known {
		return section{}, false
	}
	return section{name: name, line: number, kind: kind, banner: line, args: args}, true
}

// addFromCommand adds sizes in bytes and the duration in seconds that the command has and the output lacks. A single
// size of -r is that of request and response.
func (o *output) addFromCommand() {
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
	if !o.bannerIsStream() {
		request, response, two := strings.Cut(option(special, "-r"), ",")
		if !two {
			response = request
		}
		add("REQUEST_SIZE", netperfSize(request, "1"))
		add("RESPONSE_SIZE", netperfSize(response, "1"))
	} else if send, _, _ := strings.Cut(option(special, "-m"), ","); send != "" {
		add("LOCAL_SEND_SIZE", netperfSize(send, ""))
	}
	if d, err := time.ParseDuration(option(general, "-l") + "s"); err == nil && d > 0 {
		add("ELAPSED_TIME", strconv.FormatFloat(d.Seconds(), 'f', -1, 64))
	}
}

// netperfSize converts a size with netperf's suffix to bytes; it returns fallback if the text is no size.
func netperfSize(text, fallback string) string {
	if n := parseScaled(text, 1024); n >= 1 {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return fallback
}
