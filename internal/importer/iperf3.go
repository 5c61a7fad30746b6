package importer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/knotmeter/knotmeter/internal/family/network/iperf3"
	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedIperf3 = "the JSON that iperf3 -c SERVER -J prints, or its output on a terminal with the lines of sender " +
	"and receiver"

// readIperf3 reads every test of a file: JSON of -J or --json-stream, or else terminal output. The path is unknown.
func readIperf3(name string, data []byte) (Content, error) {
	if nextObject(data, 0) < 0 {
		c, err := readIperf3Console(name, textLines(data))
		if err != nil || len(c.Records) > 0 {
			return c, err
		}
	}
	docs, err := documents(name, data, wantedIperf3)
	if err != nil {
		return Content{}, err
	}
	var records []Record
	for _, d := range joinEvents(docs) {
		// Decoded first for errors with line and path, which the tool's parser does not report.
		var probe map[string]json.RawMessage
		if err := d.decode(&probe, wantedIperf3); err != nil {
			return Content{}, err
		}
		report, err := iperf3.ReadReport(d.text)
		if err != nil {
			return Content{}, formatError(name, d.line, "%w", err)
		}
		records = append(records, reportRecord(d, report))
	}
	return Content{Records: records}, nil
}

// readIperf3Console reads the tests that a terminal shows. A test whose summaries are missing is an invalid run beside
// others, and an error if there are none.
func readIperf3Console(name string, lines []string) (Content, error) {
	tests, unread := iperf3Tests(lines, 1)
	c := Content{Unread: unread}
	figures := map[int]bool{} // lines
	for _, t := range tests {
		c.Unread = append(c.Unread, t.unread()...)
		for _, s := range t.summaries {
			figures[s.line] = true
		}
		c.Records = append(c.Records, t.record())
	}
	if len(tests) > 0 && !slices.ContainsFunc(tests, func(t iperf3Test) bool { return !t.cut() }) {
		return Content{}, formatError(name, tests[0].line, "%s; wanted %s", missingSummary, wantedIperf3)
	}
	slices.SortStableFunc(c.Unread, func(a, b UnreadLine) int { return a.Line - b.Line })
	for _, u := range c.Unread {
		figures[u.Line] = true
	}
	c.Figures = len(figures)
	return c, nil
}

func reportRecord(d document, report iperf3.Report) Record {
	r := Record{Workload: streamName(report), Start: report.Start, Tool: "iperf3",
		Measurement: report.Measurement, Place: d.place(""), Text: d.text}
	if report.Host != "" {
		r.Facts = append(r.Facts, result.Fact{Name: "system.client", Value: report.Host})
	}
	if size := report.Workload.Size; report.Workload.Kind.Datagrams() && size > 0 {
		fact := result.Fact{Name: "udp.size", Value: strconv.Itoa(size)}
		r.Facts = append(r.Facts, fact)
		if iperf3.SizeOfPath(size) {
			r.Environment = append(r.Environment, fact)
		}
	}
	return r
}

// streamName returns Knotmeter's name of the workload, or only its kind if there is no such workload.
func streamName(report iperf3.Report) string {
	w := stream{Spec: report.Workload, amount: report.Amount}
	if report.Protocol != "TCP" && report.Protocol != "UDP" {
		return result.Unknown
	}
	// The size of a datagram that fills the path's MTU is a fact of the path, not of the workload.
	if w.Kind.Datagrams() && iperf3.SizeOfPath(w.Size) {
		w.Size = 0
	}
	return w.name()
}

// joinEvents joins the events of --json-stream, one on each line, to documents like those of -J. Others are unchanged.
func joinEvents(docs []document) []document {
	type event struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	var joined []document
	var current *document
	var intervals, parts [][]byte
	finish := func() {
		if current == nil {
			return
		}
		parts = append(parts, []byte(`"intervals":[`+string(bytes.Join(intervals, []byte{','}))+"]"))
		current.text = append(append([]byte{'{'}, bytes.Join(parts, []byte{','})...), '}')
		joined = append(joined, *current)
		current, intervals, parts = nil, nil, nil
	}
	for _, d := range docs {
		var e event
		if json.Unmarshal(d.text, &e) != nil || e.Event == "" || len(e.Data) == 0 {
			finish()
			joined = append(joined, d)
			continue
		}
		if e.Event == "start" || current == nil {
			finish()
			current = &document{name: d.name, line: d.line}
		}
		switch e.Event {
		case "interval":
			intervals = append(intervals, e.Data)
		case "start", "end", "error", "server_output_json":
			parts = append(parts, []byte(`"`+e.Event+`":`+string(e.Data)))
		}
	}
	finish()
	return joined
}
