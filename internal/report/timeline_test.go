package report

import (
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/doc"
	"github.com/knotmeter/knotmeter/internal/metric"
	"github.com/knotmeter/knotmeter/internal/result"
	"github.com/knotmeter/knotmeter/internal/unit"
)

// TestTimeline checks that the first run that counts of each target is drawn around its event, and not among the series
// within runs.
func TestTimeline(t *testing.T) {
	in := withRuns(input(row("lab:vxlan", 9.13, 6.41, -0.297, -0.33, -0.26, "different", "worse")))
	for i := range in.Runs {
		marks := []result.Mark{{Name: "request"}, {Name: "<shown>", At: 0.5}}
		in.Runs[i].Series = []result.Series{
			{Name: metric.NewProbes + metric.Latency, Unit: unit.Second, Step: 0.01, Values: []float64{0.001, 0},
				Begin: -0.01, Marks: marks},
			{Name: metric.NewProbes + metric.Lost, Unit: unit.Count, Step: 0.01, Values: []float64{0, 10}, Begin: -0.01,
				Marks: marks},
		}
	}
	b := newBuilder(in, groups(in), in.runs())
	timelines, series := b.perCase(b.timeline), b.perCase(b.series)
	if len(timelines) != 1 || len(series) != 0 {
		t.Fatalf("%d timelines, %d series", len(timelines), len(series))
	}
	got := timelines[0].(doc.Figure)
	if len(got.Columns) != 2 || got.Columns[0].Note != "request 0 s, <shown> 500 ms" {
		t.Errorf("%+v", got.Columns)
	}
	if got.Note != "latency, 100 ms before to 600 ms after" {
		t.Errorf("%s", got.Note)
	}
	html := render(t, func(b *strings.Builder) error { return writeHTML(b, in) })
	if !strings.Contains(html, "Around a change") || strings.Contains(html, "<shown>") {
		t.Error("the page has no timeline, or a name that is not escaped")
	}
}
