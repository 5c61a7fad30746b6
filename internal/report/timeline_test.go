package report

import (
	"strings"
	"testing"

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
	page := newPage(in)
	if len(page.Timelines.Shown) != 1 || page.Series.Any() {
		t.Fatalf("%d timelines, %d series", len(page.Timelines.Shown), len(page.Series.Shown))
	}
	got := page.Timelines.Shown[0]
	if len(got.Figure.Columns) != 2 || got.Figure.Columns[0].Note != "request 0 s, <shown> 500 ms" {
		t.Errorf("%+v", got.Figure.Columns)
	}
	if got.Span != "100 ms before to 600 ms after" {
		t.Errorf("%s", got.Span)
	}
	html := render(t, func(b *strings.Builder) error { return writeHTML(b, in) })
	if !strings.Contains(html, "Around a change") || strings.Contains(html, "<shown>") {
		t.Error("the page has no timeline, or a name that is not escaped")
	}
}
