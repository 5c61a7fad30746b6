package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knotmeter/knotmeter/internal/compare"
	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
)

// TestTiming checks that the overhead of each target is reported, with pods and requests if there are any. Site 4 has
// no record, as if the program had been killed.
func TestTiming(t *testing.T) {
	at := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	second := func(n float64) time.Time { return at.Add(seconds(n)) }
	in := Input{Comparison: compare.Comparison{Paired: true}}
	in.Experiment.Targets = []result.Target{{Name: "lab:native"}, {Name: "kube:a"}, {Name: "kube:b"}, {Name: "unmeasured"}}
	value := func(name string, n float64) result.Value { return result.NewValue(metric.Named(name), n) }
	in.Sites = []result.Site{
		{Number: 1, Target: "lab:native", Start: second(-5), Setup: 0.5, Used: 74, Cleanup: 0.25},
		{Number: 2, Target: "kube:a", Start: second(-5), Setup: 4, Used: 60, Cleanup: 2,
			Values: []result.Value{value(metric.Pods, 4), value(metric.APICalls, 30)}},
		{Number: 3, Target: "kube:a", Start: second(61), Setup: 5, Used: 20, Cleanup: 9,
			Values: []result.Value{value(metric.Pods, 4), value(metric.APICalls, 33)}},
		{Number: 5, Target: "unmeasured", Start: second(-5)},
	}
	for i := range 3 {
		start := second(16 * float64(i))
		in.Runs = append(in.Runs,
			result.Run{Site: 1, Target: "lab:native", Start: start, Setup: 0.3, Window: 10, Cleanup: 0.1},
			result.Run{Site: 2 + i/2, Target: "kube:a", Start: start, Setup: 0.5, Window: 5, Cleanup: 0.1 + float64(i)},
			result.Run{Site: 4, Target: "kube:b", Start: start, Setup: 0.5, Window: 1, Cleanup: 0.5},
		)
	}
	got := timingOf(in)
	if !got.First.Equal(second(-5)) {
		t.Errorf("it began at %v", got.First)
	}
	block := timeSpent(in)
	const share = "48 % of the 1m40s from start to end were spent measuring."
	if text := block.Parts[0].(doc.Paragraph).Text; !strings.HasPrefix(text, share) {
		t.Errorf("%q", text)
	}
	var cells [][]string
	table := block.Parts[1].(doc.Table)
	for _, row := range table.Rows {
		var texts []string
		for _, c := range row.Cells {
			texts = append(texts, c.Text)
		}
		cells = append(cells, append(texts, row.Head))
		if len(texts) != len(table.Columns) {
			t.Errorf("%s has %d cells below %d heads", row.Head, len(texts), len(table.Columns))
		}
	}
	rows := [][]string{
		{"1", "0.5 s", "0.2 s", "3", "", "", "0.4 s", "lab:native"},
		{"2", "4.5 s", "5.5 s", "1.5", "4", "31.5", "1.6 s", "kube:a"},
		{"", "", "", "", "", "", "1.0 s", "kube:b"},
	}
	if diff := cmp.Diff(rows, cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Runs = nil
	if got := timeSpent(in).Parts; len(got) > 0 {
		t.Errorf("without runs: %v", got)
	}
}
