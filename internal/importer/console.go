package importer

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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
	lines = unquoted(lines)
	tests, _ := iperf3Tests(lines, first)
	for _, t := range tests {
		switch {
		case t.cut():
			errs = append(errs, formatError(name, t.line, "%s", missingSummary))
		case t.failure == "" || t.args != nil: // pages quote error messages, too
			found = append(found, Printed{t.record(), t.line})
		}
	}
	for _, s := range netperfSections(name, lines, first) {
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

// linePrefix matches what quotations and logs put before lines: "> ", the time that kubectl logs --timestamps prints,
// and the pod and container of --prefix.
var linePrefix = regexp.MustCompile(
	`^(?:[ \t]*>[ \t]?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*(?: |$)|\[pod/\S+\](?: |$))+`)

// unquoted returns the lines without such prefixes.
func unquoted(lines []string) []string {
	plain := make([]string, len(lines))
	for i, line := range lines {
		plain[i] = line[len(linePrefix.FindString(line)):]
	}
	return plain
}

// textLines returns the lines of a file without their ends and without prefixes.
func textLines(data []byte) []string {
	text := strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	return unquoted(strings.Split(text, "\n"))
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
		request, response, two := strings.Cut(strings.ReplaceAll(option(special, "-r"), ":", ","), ",")
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
