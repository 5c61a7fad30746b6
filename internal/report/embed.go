package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/result"
)

// The sizes in bytes of what a page embeds, so that all of it stays below 1 MB.
const (
	mostPage = 985e3
	mostJSON = 80e3
	// mostMedians is how many medians are in JSON that would be too large with all of them.
	mostMedians = 100
	mostCSV     = 250e3
	// mostCompressed is the number of runs above which it is not tried to make their CSV small enough.
	mostCompressed = 20000
)

// runsPlace is where in the page the runs come, once it is known how much room there is. No text of a
// user's can be it, for all are escaped.
const runsPlace = `<p id="runs-csv"></p>`

// A download is a file inside the page: a link with a data: URI, which works without script.
type download struct {
	About string
	Link  string // markup; empty if the file is too large for the page
}

// paragraph is the download as it stands in the page; nothing without runs.
func (d download) paragraph() template.HTML {
	switch {
	case d.About == "":
		return ""
	case d.Link == "":
		return template.HTML("<p>" + template.HTMLEscapeString(d.About) + "</p>")
	}
	return template.HTML("<p>" + d.Link + ": " + template.HTMLEscapeString(d.About) + "</p>")
}

// embeddedComparison is the comparison as JSON, without its pairs, then without its exploratory rows
// where it would be too large; about says what is left out.
func embeddedComparison(c compare.Comparison) (text template.JS, about string, err error) {
	last := "without its comparisons"
	if len(c.Medians) > 0 {
		last = fmt.Sprintf("with %d of its medians at most", mostMedians)
	}
	steps := []struct {
		about string
		cut   func(compare.Comparison) compare.Comparison
	}{
		{"", func(c compare.Comparison) compare.Comparison { return c }},
		{"without the values of single blocks", withoutPairs},
		{"the primary comparisons alone, without the values of single blocks", primaryAlone},
		{last, func(c compare.Comparison) compare.Comparison {
			c = primaryAlone(c)
			c.Comparisons, c.Findings, c.Gates = []compare.Row{}, c.Findings[:min(len(c.Findings), 20)], c.Gates[:min(len(c.Gates), 20)]
			c.NotMeasured, c.Medians = c.NotMeasured[:min(len(c.NotMeasured), 20)], c.Medians[:min(len(c.Medians), mostMedians)]
			return c
		}},
	}
	for _, s := range steps {
		part := s.cut(c)
		if leastSize(part) > mostJSON {
			continue
		}
		// json.Marshal escapes <, > and &, so that no text of a user's can end the script element.
		full, err := json.Marshal(part)
		if err != nil {
			return "", "", fmt.Errorf("encode the comparison as JSON: %w", err)
		}
		text, about = template.JS(full), s.about
		if len(full) <= mostJSON {
			break
		}
	}
	return text, about, nil
}

// leastSize is what a comparison takes as JSON at the very least, to spare writing hundreds of megabytes
// that are too many.
func leastSize(c compare.Comparison) int {
	size := 0
	for _, r := range c.Comparisons {
		size += len(`{"case":"","metric":"","unit":"","better":"","role":"","target":"","baseline":""}`) +
			len(r.Pairs)*len(`{"block":1,"baseline":1,"target":1,"change":1}`)
	}
	return size
}

func withoutPairs(c compare.Comparison) compare.Comparison {
	rows := make([]compare.Row, len(c.Comparisons))
	for i, r := range c.Comparisons {
		r.Pairs = []compare.Pair{}
		rows[i] = r
	}
	c.Comparisons = rows
	return c
}

func primaryAlone(c compare.Comparison) compare.Comparison {
	c.Comparisons = c.Primary()
	c.Groups, c.Boxes = []compare.Group{}, []compare.Box{}
	return withoutPairs(c)
}

// embeddedRuns is the CSV of the runs: as it is, compressed, rounded, or with the metrics that are
// compared alone, the first of these that fits into so many bytes.
func embeddedRuns(in Input, room int) (download, error) {
	runs := in.runs()
	if len(runs) == 0 {
		return download{}, nil
	}
	none := download{About: fmt.Sprintf("The %d runs are too many to be embedded; “knotmeter report --format csv” writes all of them beside this page.", len(runs))}
	if len(runs) > mostCompressed {
		return none, nil
	}
	var full bytes.Buffer
	if err := CSV(&full, in); err != nil {
		return download{}, err
	}
	if d := asLink("runs.csv", "text/csv;charset=utf-8", full.Bytes()); len(d.Link) <= room {
		d.About = fmt.Sprintf("all %d runs with all their values, inside this page.", len(runs))
		return d, nil
	}
	steps := []struct {
		about string
		write func(io.Writer) error
	}{
		{"with all their values", func(w io.Writer) error { _, err := w.Write(full.Bytes()); return err }},
		{"with all their values, to six digits", func(w io.Writer) error { return roundedCSV(w, runs, 6, false) }},
		{"with the values that are compared, to five digits", func(w io.Writer) error { return roundedCSV(w, runs, 5, true) }},
		{"with the metric of their case, to five digits", func(w io.Writer) error { return roundedCSV(w, ownMetric(in, runs), 5, true) }},
	}
	for _, s := range steps {
		text, err := compressed(s.write)
		if err != nil {
			return download{}, err
		}
		if d := asLink("runs.csv.gz", "application/gzip", text); len(d.Link) <= room {
			d.About = fmt.Sprintf("all %d runs %s, compressed, inside this page. “knotmeter report --format csv” writes them in full.", len(runs), s.about)
			return d, nil
		}
	}
	return none, nil
}

// asLink is the link as a whole, for a template would escape each + of the data to five characters.
func asLink(name, media string, data []byte) download {
	return download{Link: fmt.Sprintf(`<a download="%s" href="data:%s;base64,%s">Download %s</a>`,
		name, media, base64.StdEncoding.EncodeToString(data), name)}
}

func compressed(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress the runs: %w", err)
	}
	if err := write(z); err != nil {
		return nil, fmt.Errorf("compress the runs: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress the runs: %w", err)
	}
	return b.Bytes(), nil
}

// ownMetric are the runs with the value alone that their case is measured for.
func ownMetric(in Input, runs []run) []run {
	own := map[string]string{}
	for _, c := range in.Experiment.Cases {
		own[c.Name] = c.Metric
	}
	list := make([]run, len(runs))
	for i, r := range runs {
		only := *r.Run
		only.Values = nil
		if v, ok := r.Value(own[r.Case]); ok {
			only.Values = []result.Value{v}
		}
		r.Run = &only
		list[i] = r
	}
	return list
}

// roundedCSV is CSV with so many digits of each number and times to the millisecond, and, if directed,
// without the metrics of which neither way is better.
func roundedCSV(w io.Writer, runs []run, digits int, directed bool) error {
	metrics := metricColumns(runs)
	if directed {
		metrics = directedColumns(runs)
	}
	head := []string{"experiment", "block", "slot", "attempt", "case", "target", "tool", "start", "setup", "window", "valid", "invalid_reason", "session"}
	for _, m := range metrics {
		head = append(head, fmt.Sprintf("%s [%s]", m.name, m.unit))
	}
	round := func(v float64) string { return strconv.FormatFloat(v, 'g', digits, 64) }
	out := csv.NewWriter(w)
	out.UseCRLF = true
	out.Write(head) // the error stays with out
	for _, r := range runs {
		row := []string{
			r.experiment, strconv.Itoa(r.Block), strconv.Itoa(r.Slot), strconv.Itoa(r.Attempt), r.Case, r.Target, r.Tool,
			began(r.Start, "2006-01-02T15:04:05.000Z"), round(r.Setup), round(r.Window),
			strconv.FormatBool(r.Valid()), strings.Join(r.Invalid, "; "), sessionText(r.Session),
		}
		for _, m := range metrics {
			cell := ""
			if v, ok := r.Value(m.name); ok && v.Unit == m.unit {
				cell = shortest(v.Number, digits)
			}
			row = append(row, cell)
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// shortest is v with so many digits, without zeros at their end.
func shortest(v float64, digits int) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		return float(v)
	}
	return float(rounded)
}

func directedColumns(runs []run) []metricColumn {
	directed := map[metricColumn]bool{}
	for _, r := range runs {
		for _, v := range r.Values {
			if v.Better != result.Neutral {
				directed[metricColumn{v.Metric, v.Unit}] = true
			}
		}
	}
	var kept []metricColumn
	for _, c := range metricColumns(runs) {
		if directed[c] {
			kept = append(kept, c)
		}
	}
	return kept
}
