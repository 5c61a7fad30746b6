package importer

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
)

// A kind is what a file can seem to be.
type kind struct {
	text    string // what it is, and the command that makes what can be read
	format  string // that reads it; empty: none
	pattern *regexp.Regexp
	vague   bool // the format that was asked for may read it all the same
}

// kinds lists what people take for the output that a format reads, the surest first.
var kinds = []kind{
	{text: "a compressed archive; of a .knbdata of knb, `knb -fd FILE.knbdata -o json -f FILE.json` makes JSON",
		pattern: regexp.MustCompile(`^\x1f\x8b`)},
	{text: "a page of HTML; save the tool's own output",
		pattern: regexp.MustCompile(`(?i)^\s*<(?:!doctype\s+html|html|head|body)\b`)},
	{text: "JSON of fio", format: "fio", pattern: regexp.MustCompile(`"fio version"\s*:`)},
	{text: "JSON of knb", format: "knb", pattern: regexp.MustCompile(`"generator"\s*:\s*"knb"`)},
	{text: "JSON of vault-benchmark or vegeta", format: "vault-benchmark",
		pattern: regexp.MustCompile(`"latencies"\s*:\s*\{`)},
	{text: "JSON of iperf3", format: "iperf3", pattern: regexp.MustCompile(`"version"\s*:\s*"iperf 3`)},
	{text: "output of netperf", format: "netperf",
		pattern: regexp.MustCompile(`(?m)^.*(?:MIGRATED )?[A-Z][A-Z/| ]+ TEST (?:to|TO|from) .*\bAF_INET`)},
	{text: "output of iperf 2, another program than iperf3; `iperf3 -c SERVER -J > FILE.json` makes JSON of iperf3",
		pattern: regexp.MustCompile(`(?m)\[ *(?:SUM|\d+)\] +(?:\d+\.\d|\d+\.\d{4})- *(?:\d+\.\d|\d+\.\d{4}) sec\b` +
			`|Client connecting to \S+, (?:TCP|UDP) port|^Server listening on (?:TCP|UDP) port`)},
	{text: "output of iperf3", format: "iperf3", pattern: interimRow},
	{text: "the text that fio prints for readers; `fio --output-format=json+ JOBFILE > FILE.json` makes JSON",
		pattern: regexp.MustCompile(`(?m)^\s*(?:read|write|READ|WRITE) ?: (?:IOPS=|bw=)`)},
	{text: "the log of a shell", vague: true, pattern: regexp.MustCompile(`(?m)^(?:\S+@\S+\s?\S*[$#]|[$#]) \S`)},
}

// seemsToBe returns what a file seems to be, and the format that reads it; none if nothing is recognized.
func seemsToBe(name string, data []byte) (k kind, known bool) {
	const enough = 64 << 10 // bytes at the beginning that tell
	data = data[:min(len(data), enough)]
	if filepath.Ext(name) == ".knbdata" {
		return kinds[0], true
	}
	for _, k := range kinds {
		if k.pattern.Match(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
			return k, true
		}
	}
	return kind{}, false
}

// Hint tells which file of a tool a text seems to be and how to import it; empty if it seems to be none.
func Hint(name string, data []byte) string {
	k, known := seemsToBe(name, data)
	switch {
	case !known:
		return ""
	case k.format == "":
		return "it seems to be " + k.text
	}
	return fmt.Sprintf("it seems to be %s, which `knotmeter import %s %s` reads", k.text, k.format, name)
}

// refusal returns the error about a file that cannot be read as this format. It begins with what the file seems to be,
// if that is something else.
func (f Format) refusal(s Source, err error) error {
	switch k, known := seemsToBe(s.Name, s.Data); {
	case !known || k.format == f.Name:
		return err
	case k.vague:
		return fmt.Errorf("%w; %s", err, Hint(s.Name, s.Data))
	}
	return formatError(s.Name, 0, "%s; wanted %s", Hint(s.Name, s.Data), f.wanted)
}
