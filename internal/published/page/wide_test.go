package page

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/audit"
)

// TestManyColumns reads and judges tables of 4000 columns. Work that grew with the square or the third power of the
// columns would exceed the time limit of tests.
func TestManyColumns(t *testing.T) {
	const columns = 4000
	line := func(first, format string, value func(int) any) string {
		var b strings.Builder
		b.WriteString(first)
		for i := range columns {
			fmt.Fprintf(&b, format, value(i))
		}
		return b.String() + "\n"
	}
	index, figure := func(i int) any { return i }, func(i int) any { return float64(5+i%7) + float64(i)/1000 }
	tables := map[string]string{"targets": line("case", ",t%d", index),
		"metrics": line("target", ",p%d latency us", index)}
	for row := range 4 {
		tables["targets"] += line(fmt.Sprintf("tcp throughput Gbit/s %d", row), ",%g", figure)
		tables["metrics"] += line(fmt.Sprintf("target%d", row), ",%g", figure)
	}
	words := strings.TrimSuffix(line("tcp throughput (Gbit/s)", ",w%d", index), "\n") // label cells, which are joined
	tables["words"] = words + line("", ",t%d", index)
	for range 2 {
		tables["words"] += words + line("", ",%g", figure)
	}
	for name, text := range tables {
		d, err := Read(name+".csv", []byte(text), families)
		if err != nil || d.Figures < 2*columns {
			t.Fatalf("%s: %v", name, err)
		}
		audit.Examine(audit.Evidence{Results: d.Results, Source: name})
		for _, r := range d.Runs {
			if len(r.Values) > maxValues || len(r.Case) > 2*maxLabel || len(r.Target) > 2*maxLabel {
				t.Fatalf("%s: a run of %d values has names of %d and %d bytes", name, len(r.Values), len(r.Case), len(r.Target))
			}
		}
	}
}

// TestTooManyCells checks that the limit counts rows at the length of their header, even if they are shorter.
func TestTooManyCells(t *testing.T) {
	text := "| a" + strings.Repeat("|b", 2000) + "|\n" + strings.Repeat("|-",
		2001) + "|\n" + strings.Repeat("| x | 5 |\n", 1000)
	if _, err := Read("ragged.md", []byte(text), families); !errors.Is(err, ErrFormat) ||
		!strings.Contains(err.Error(), "ragged.md:1:") {
		t.Errorf("%v", err)
	}
	text = "<table>\n" + strings.Repeat("<tr><td colspan=200 rowspan=1000>p99 (ms)</td></tr>\n", 9)
	for _, name := range []string{"spans.html", "spans.md"} {
		if _, err := Read(name, []byte(text), families); !errors.Is(err, ErrFormat) ||
			!strings.Contains(err.Error(), name+":7:") {
			t.Errorf("%v", err)
		}
	}
}
