package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network"
	"github.com/knotmeter/knotmeter/internal/family/network/iperf3"
	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedIperf3 = "the JSON that iperf3 -J prints"

// readIperf3 reads every test of a file: JSON of -J or --json-stream, or else terminal output. The path is unknown.
func readIperf3(name string, data []byte) ([]Record, error) {
	var records []Record
	if nextObject(data, 0) < 0 {
		for _, t := range iperf3Tests(strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), 1) {
			records = append(records, t.record())
		}
	}
	if len(records) > 0 {
		return records, nil
	}
	docs, err := documents(name, data, wantedIperf3)
	if err != nil {
		return nil, err
	}
	for _, d := range joinEvents(docs) {
		// Decoded first for errors with line and path, which the tool's parser does not report.
		var probe map[string]json.RawMessage
		if err := d.decode(&probe, wantedIperf3); err != nil {
			return nil, err
		}
		report, err := iperf3.ReadReport(d.text)
		if err != nil {
			return nil, formatError(name, d.line, "%w", err)
		}
		records = append(records, reportRecord(d, report))
	}
	return records, nil
}

func reportRecord(d document, report iperf3.Report) Record {
	r := Record{Workload: streamName(report), Start: report.Start, Tool: "iperf3",
		Measurement: report.Measurement, Place: d.place(""), Text: d.text}
	if report.Host != "" {
		r.Facts = append(r.Facts, result.Fact{Name: "system.client", Value: report.Host})
	}
	if size := report.Workload.Size; report.Workload.Kind.Datagrams() && size > 0 {
		r.Facts = append(r.Facts, result.Fact{Name: "udp.size", Value: fmt.Sprint(size)})
	}
	return r
}

// streamName returns Knotmeter's name of the workload, or only its kind if there is no such workload.
func streamName(report iperf3.Report) string {
	w := report.Workload
	if report.Protocol != "TCP" && report.Protocol != "UDP" {
		return result.Unknown
	}
	// The size of a datagram that fills the path's MTU is a fact of the path, not of the workload.
	if w.Kind.Datagrams() && (w.Size == 1448 || w.Size == 1460 || w.Size == 1472) {
		w.Size = 0
	}
	if _, err := w.Resolved(); err != nil {
		return string(w.Kind)
	}
	return network.Name(w)
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
