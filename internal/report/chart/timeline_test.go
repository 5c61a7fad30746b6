package chart

import (
	"strings"
	"testing"
)

func TestTimeline(t *testing.T) {
	kind := TimelineKind{Begin: -0.1, Step: 0.1, Slowest: []float64{0.001, 0, 0, 0.002}, Lost: []float64{0, 3, 1, 0}}
	figure := Timeline{From: -0.1, To: 0.3,
		Sets: []TimelineColumn{{Kinds: []TimelineKind{{}, kind}, Marks: []float64{0.1}}}}
	figure.Height, figure.Count, figure.Scale = 100, 1, Linear(0, 0.003)
	got := string(figure.Plot(Caption{}))
	for _, want := range []string{
		`<path class="lost series2" d="M290 12H710"/>`, // from 0 to 0.2 s, between the margins
		`<path class="mark" d="M500 0V100"/>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\ndoes not have %s", got, want)
		}
	}
	if strings.Contains(got, "series1") || strings.Count(got, "h0") != 2 {
		t.Errorf("two answers of one kind: %s", got)
	}
}

// TestTimelineEnds checks that requests before or after the figure are not drawn.
func TestTimelineEnds(t *testing.T) {
	kind := TimelineKind{Begin: -5, Step: 1, Slowest: []float64{1, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		Lost: []float64{1, 1, 0, 0, 1, 1, 1, 1, 1, 1}}
	figure := Timeline{From: -0.1, To: 0.3, Sets: []TimelineColumn{{Kinds: []TimelineKind{kind}}}}
	figure.Height, figure.Count, figure.Scale = 100, 1, Linear(0, 1)
	if got := string(figure.Plot(Caption{})); strings.Count(got, "H920") != 1 || strings.Contains(got, "h0") {
		t.Errorf("one bar across the figure, and no dot: %s", got)
	}
}
