package table

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/knotmeter/knotmeter/internal/audit"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

var (
	link        = regexp.MustCompile(`!?\[([^\]]*)\]\((?:[^()]|\([^)]*\))*\)`)
	proseFigure = regexp.MustCompile(`(?:^|[\s(\[~])(\d[\d,]*(?:\.\d+)?)\s?` +
		`((?:[KMGT]i?)?(?:bps|bit/s|bits/s|Bit/s|bits/sec|b/s|B/s)|IOPS|iops|µs|us|ms|milliseconds|microseconds)\b`)
	shareWord   = regexp.MustCompile(`\d\s?%`)
	sentenceEnd = regexp.MustCompile(`[.!?]\s+|。`)
	compares    = regexp.MustCompile(
		`(?i)\b(faster|slower|outperforms?|on par|latenc(?:y|ies) (?:is|are) (?:lower|higher)` +
			`|(?:lower|lowest|higher|highest|less|more|better|slightly|similar|same) (?:\w+ ){0,2}` +
			`(?:speeds?|bandwidth|throughput|latency|latencies|performance|iops|overhead)|overhead|degradation)\b` +
			`|较差|性能最好|表现相近|性能相近|次之`)
	notCompares = regexp.MustCompile(`(?i)\b(?:lower|higher) is better\b`)
	limitWords  = regexp.MustCompile(`(?i)\b(?:network bandwidth|link speed|link rate|line rate|nic speed)\b`)
	beyondWords = regexp.MustCompile(`(?i)\bexceed\w*\b.{0,60}\b(?:maximum|limit|guarantee)|超过.{0,20}(?:上限|限制)`)
	announces   = regexp.MustCompile(
		`(?i)\b(?:performance|capabilities|limits|results|figures|numbers|values)\b.*:$|\bsize:$`)
	backquoted = regexp.MustCompile("`([^`]+)`")
	ofLink     = regexp.MustCompile(`(?i)^\s+(?:networks?|links?|nics?|interfaces?|ports?|cards?|switch(?:es)?)\b`)
	subjectEnd = regexp.MustCompile(`\s(?:had|has|have|with|provides?|currently|offers?)\s`)
)

// readProse reads a line of sentences; number is the line's, from 1.
func (r *reader) readProse(number int) {
	text := strings.TrimSpace(link.ReplaceAllString(toHalfWidth(r.line(number-1)), "$1"))
	text = strings.TrimSpace(strings.TrimLeft(text, "-*•> "))
	if r.announcesMissing(number, text) {
		r.addSentence(number, audit.SaidAnnounced, text)
	}
	for _, sentence := range sentences(text) {
		r.readSentence(number, sentence)
	}
}

// sentences splits a line at the ends of sentences.
func sentences(text string) []string {
	var all []string
	for {
		at := sentenceEnd.FindStringIndex(text)
		if at == nil {
			break
		}
		all = append(all, text[:at[1]])
		text = text[at[1]:]
	}
	if strings.TrimSpace(text) != "" {
		all = append(all, text)
	}
	return all
}

// announcesMissing reports whether a line announces figures and a sentence, another announcement or nothing follows.
func (r *reader) announcesMissing(number int, text string) bool {
	if !announces.MatchString(text) {
		return false
	}
	for i := number; i < len(r.lines); i++ {
		next := strings.TrimSpace(r.line(i))
		if next == "" {
			continue
		}
		return unicode.IsLetter([]rune(next)[0]) && strings.HasSuffix(next, ".") || announces.MatchString(next)
	}
	return true
}

// readSentence adds the figures of a sentence, a link rate, or a comparison without figures.
func (r *reader) readSentence(number int, text string) {
	figures := proseValues(text)
	switch {
	case limitWords.MatchString(text) && len(figures) > 0:
		r.readLinkRate(number, text, figures[0])
	case len(figures) > 0:
		for _, v := range figures {
			r.addSentence(number, audit.SaidFigure, text, v)
		}
	case beyondWords.MatchString(text):
		r.addSentence(number, audit.SaidBeyond, text)
	case notCompares.MatchString(text) || !compares.MatchString(text):
	case shareWord.MatchString(text):
		r.addSentence(number, audit.SaidShare, text)
	default:
		r.addSentence(number, audit.SaidClaim, text)
	}
}

// proseValues returns the figures with units in a sentence, except those of links.
func proseValues(text string) []result.Value {
	var values []result.Value
	for _, at := range proseFigure.FindAllStringSubmatchIndex(text, -1) {
		if ofLink.MatchString(text[at[1]:]) {
			continue
		}
		found := []string{"", text[at[2]:at[3]], text[at[4]:at[5]]}
		number, ok := decimal(strings.ReplaceAll(found[1], ",", ""))
		scale, u, known := unitOf(found[2])
		if ok && known && finite(number*scale) {
			values = append(values, value(metricOfUnit(u), u, number*scale))
		}
	}
	return values
}

// readLinkRate adds the link rate that a sentence gives for its subject.
func (r *reader) readLinkRate(number int, text string, v result.Value) {
	if v.Unit != unit.BitPerSecond {
		return
	}
	name := ""
	if found := backquoted.FindStringSubmatch(text); found != nil {
		name = found[1]
	} else if at := subjectEnd.FindStringIndex(text); at != nil {
		name = text[:at[0]]
	}
	if name = clean(name); name == "" {
		return
	}
	r.registerTarget(name)
	r.doc.Facts[name] = append(r.doc.Facts[name],
		result.Fact{Name: audit.FactLink, Value: unit.Format(v.Number, v.Unit)},
		result.Fact{Name: audit.FactPlace, Value: r.place(number)})
	r.figures++
}

// listItem returns the text of a list item; empty if the line is none.
func listItem(line string) string {
	text := strings.TrimLeft(line, " \t")
	for _, mark := range []string{"- ", "* ", "• "} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// readList reads a list of configurations: its items without nested ones. It returns the number of lines read.
func (r *reader) readList() int {
	indent := func(i int) int { return len(r.line(i)) - len(strings.TrimLeft(r.line(i), " \t")) }
	n := 0
	for ; listItem(r.line(r.at+n)) != ""; n++ {
		i := r.at + n
		if listItem(r.line(i+1)) != "" && indent(i+1) > indent(i) {
			continue
		}
		r.listed = append(r.listed, listed{clean(listItem(r.line(i))), r.place(i + 1)})
	}
	return n
}

// matchListed matches the listed configurations with the targets of the tables, and registers those without figures. A
// list of which fewer than two items, or fewer than half, match is about something else.
func (b *builder) matchListed() {
	names := map[string]listed{}
	var missed []listed
	for _, l := range b.listed {
		found := false
		for _, t := range b.doc.Experiment.Targets {
			if alike(l.name, t.Name) {
				names[t.Name], found = l, true
			}
		}
		if !found {
			missed = append(missed, l)
		}
	}
	if len(names) < 2 || len(names) < len(missed) {
		return
	}
	for _, l := range missed {
		if !b.targets[l.name] {
			b.registerTarget(l.name)
			names[l.name] = l
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), cmp.Compare) {
		b.doc.Facts[name] = append(b.doc.Facts[name], result.Fact{Name: audit.FactListed, Value: names[name].place})
	}
}

// alike reports whether two names are equal but for case, spaces, punctuation, words for mode, and one letter.
func alike(a, b string) bool {
	x, y := normalised(a), normalised(b)
	return x == y || min(len(x), len(y)) > 5 && withinOneEdit([]rune(x), []rune(y))
}

// normalised returns the letters and digits of a name, in lower case, without words for mode.
func normalised(name string) string {
	low := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(clean(name), "模式", ""), "mode", ""))
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, low)
}

// withinOneEdit reports whether one letter inserted, removed or replaced turns a into b.
func withinOneEdit(a, b []rune) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i == len(a) || slices.Equal(a[i+1:], b[i+1:])
	}
	return len(b) == len(a)+1 && slices.Equal(a[i:], b[i+1:])
}
