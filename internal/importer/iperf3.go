package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/knotmeter/knotmeter/internal/family/network/iperf3"
	"github.com/knotmeter/knotmeter/internal/result"
)

const wantedIperf3 = "the JSON that iperf3 -J prints"

// readIperf3 reads every test of a file, also those of --json-stream, or what was printed on a terminal. A path is not
// in it.
func readIperf3(name string, data []byte) ([]Record, error) {
	if nextObject(data, 0) < 0 {
		if tests := iperf3Tests(strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), 1); len(tests) > 0 {
			return printed(tests), nil
		}
	}
	docs, err := documents(name, data, wantedIperf3)
	if err != nil {
		return nil, err
	}
	if docs, err = assembled(docs); err != nil {
		return nil, err
	}
	var records []Record
	for _, d := range docs {
		// For an error with line and path; the tool's parser only says what is wrong.
		var probe map[string]json.RawMessage
		if err := d.decode(&probe, wantedIperf3); err != nil {
			return nil, err
		}
		report, err := iperf3.ReadReport(d.text)
		if err != nil {
			return nil, broken(name, d.line, "%w", err)
		}
		records = append(records, ofReport(d, report))
	}
	return records, nil
}

func printed(tests []iperf3Test) []Record {
	records := make([]Record, len(tests))
	for i, t := range tests {
		records[i] = t.record()
	}
	return records
}

func ofReport(d document, report iperf3.Report) Record {
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

// streamName is the workload's part of the case: ours where it is the same thing.
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
	return w.String()
}

// assembled makes one document of the lines of --json-stream, an event each.
func assembled(docs []document) ([]document, error) {
	type event struct {
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	var whole []document
	var open *document
	var intervals, parts [][]byte
	finish := func() {
		if open == nil {
			return
		}
		parts = append(parts, []byte(`"intervals":[`+string(bytes.Join(intervals, []byte{','}))+"]"))
		open.text = append(append([]byte{'{'}, bytes.Join(parts, []byte{','})...), '}')
		whole = append(whole, *open)
		open, intervals, parts = nil, nil, nil
	}
	for _, d := range docs {
		var e event
		if json.Unmarshal(d.text, &e) != nil || e.Event == "" || len(e.Data) == 0 {
			finish()
			whole = append(whole, d)
			continue
		}
		if e.Event == "start" || open == nil {
			finish()
			open = &document{name: d.name, line: d.line}
		}
		switch e.Event {
		case "interval":
			intervals = append(intervals, e.Data)
		case "start", "end", "error", "server_output_json":
			parts = append(parts, []byte(`"`+e.Event+`":`+string(e.Data)))
		}
	}
	finish()
	return whole, nil
}
