package chart

import (
	"encoding/xml"
	"html/template"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/doc"
)

// wellFormed fails the test unless a figure is well-formed XML whose positions are finite numbers; it returns the text.
func wellFormed(t *testing.T, figure template.HTML) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(figure)))
	percent := regexp.MustCompile(`^([0-9.]+)%$`)
	for {
		token, err := d.Token()
		if err == io.EOF {
			return string(figure)
		}
		if err != nil {
			t.Fatalf("%v in %s", err, figure)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "x", "x1", "x2", "cx":
				if strings.HasSuffix(a.Value, "%") && !percent.MatchString(a.Value) {
					t.Errorf("%s has %s=%q in %s", e.Name.Local, a.Name.Local, a.Value, figure)
				}
			}
			if a.Name.Local != "aria-label" && regexp.MustCompile("NaN|Inf").MatchString(a.Value) {
				t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

func TestScaleAt(t *testing.T) {
	tests := []struct {
		scale Scale
		v     float64
		want  float64
	}{
		{Scale{Lo: 0, Hi: 10}, 5, 50}, {Scale{Lo: 0, Hi: 10}, -1, 0},
		{Scale{Lo: 0, Hi: 10}, math.Inf(1), 100}, {Scale{Lo: 3, Hi: 3}, 3, 50},
		{Scale{Lo: 1, Hi: 100, Log: true}, 10, 50},
		{Scale{Lo: 1, Hi: 100, Log: true}, 0, 0}, {Scale{Lo: 1, Hi: 100, Log: true}, -5, 0},
	}
	for _, tt := range tests {
		if got := tt.scale.At(tt.v); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%+v at %v is %v, want %v", tt.scale, tt.v, got, tt.want)
		}
	}
}

func TestScalesHoldTheirValues(t *testing.T) {
	for _, values := range [][]float64{{1, 2, 3}, {5}, {0}, {},
		{-3, 4}, {9.1e9, 9.2e9}, {1e-6, math.NaN(), 2e-6, math.Inf(1)}} {
		for name, s := range map[string]Scale{"linear": Linear(values...), "logarithmic": logarithmic(values...)} {
			if !(s.Lo < s.Hi) {
				t.Errorf("the %s scale of %v is %+v", name, values, s)
			}
			for _, v := range values {
				if math.IsNaN(v) || math.IsInf(v, 0) || s.Log && v <= 0 {
					continue
				}
				if v < s.Lo || v > s.Hi {
					t.Errorf("the %s scale of %v leaves out %v: %+v", name, values, v, s)
				}
			}
			ticks := s.Ticks(4)
			if len(ticks) < 2 || len(ticks) > 12 {
				t.Errorf("the %s scale of %v has the ticks %v", name, values, ticks)
			}
			for i, v := range ticks {
				if v < s.Lo || v > s.Hi || i > 0 && v <= ticks[i-1] {
					t.Errorf("the %s scale %+v has the ticks %v", name, s, ticks)
				}
			}
		}
	}
}

// TestTicksEnd checks that values that differ in their last bit count as one value, and that there are no ticks if
// steps are too small to change a number: a loop that adds such a step would never end.
func TestTicksEnd(t *testing.T) {
	next := func(v float64) float64 { return math.Nextafter(v, math.Inf(1)) }
	for _, v := range []float64{5000, 1e-9, 1e17, -3} {
		for name, s := range map[string]Scale{"linear": Linear(v, next(v)),
			"from zero": FromZero(v, next(v), v), "logarithmic": logarithmic(v, next(v))} {
			if n := len(s.Ticks(4)); n < 2 || n > 12 {
				t.Errorf("the %s scale of %v and the next number is %+v with %d ticks", name, v, s, n)
			}
		}
	}
	for _, s := range []Scale{
		{Lo: 5000, Hi: next(5000)}, {Lo: 1e17, Hi: next(1e17)},
		{Lo: 5e-324, Hi: 1e-323, Log: true}, {Lo: 5e-324, Hi: math.MaxFloat64, Log: true},
		{Lo: 1, Hi: math.Inf(1), Log: true}, {Lo: 0, Hi: math.Inf(1)},
		{Lo: math.Inf(-1), Hi: math.Inf(1)}, {Lo: -math.MaxFloat64, Hi: math.MaxFloat64},
	} {
		if n := len(s.Ticks(4)); n > 12 {
			t.Errorf("%+v has %d ticks", s, n)
		}
	}
	for _, total := range []float64{0, 1, 86400 * 365, 1e18, math.Inf(1), math.NaN()} {
		if n := strings.Count(string(StripAxis(total)), "<text"); n > 6 {
			t.Errorf("a strip of %v s has %d labels", total, n)
		}
	}
}

func TestLinearBeginsAtZeroWhereSizesCanBeSeen(t *testing.T) {
	if s := Linear(2, 9); s.Lo != 0 {
		t.Errorf("the scale of 2 and 9 begins at %v", s.Lo)
	}
	if s := Linear(9.1, 9.2); s.Lo < 9 {
		t.Errorf("the scale of 9.1 and 9.2 begins at %v", s.Lo)
	}
}

func TestForestDrawsOpenEndsAsArrows(t *testing.T) {
	const bar, arrow = `y1="10"`, `-4L0,0L`
	tests := []struct {
		name         string
		row          Interval
		bars, arrows int
	}{
		{"bounded", Interval{Change: -0.3, Lo: -0.33, Hi: -0.26, Mark: doc.Worse}, 2, 0},
		{"no upper end", Interval{Change: 0.1, Lo: -0.05, Hi: math.Inf(1), Mark: doc.Undecided}, 1, 1},
		{"no end", Interval{Change: 0.1, Lo: math.Inf(-1), Hi: math.Inf(1), Mark: doc.Undecided}, 0, 2},
		{"down to nothing", Interval{Change: -0.1, Lo: -1, Hi: 0, Mark: doc.Undecided}, 1, 1},
		{"far beyond the axis", Interval{Change: 0.1, Lo: 0.05, Hi: 50, Mark: doc.Better}, 1, 1},
		{"not known", Interval{Change: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Mark: doc.Undecided}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := NewForest([]Interval{tt.row, {Change: 0.2, Lo: 0.1, Hi: 0.3}}, 0.02)
			figure := wellFormed(t, f.Row(tt.row))
			if bars, arrows := strings.Count(figure, bar), strings.Count(figure, arrow); bars != tt.bars || arrows != tt.arrows {
				t.Errorf("%d bars and %d arrows, want %d and %d: %s", bars, arrows, tt.bars, tt.arrows, figure)
			}
		})
	}
}

// TestForestHasHalfOfTheIntervals checks that the axis holds half of the intervals completely, even if all are much
// wider than the changes.
func TestForestHasHalfOfTheIntervals(t *testing.T) {
	rows := []Interval{{Change: 0.04, Lo: -0.3, Hi: 0.2}, {Change: -0.01, Lo: -0.2, Hi: 0.1},
		{Change: -0.01, Lo: -0.1, Hi: 0.08}, {Change: 0, Lo: -0.9, Hi: 40}}
	f, whole := NewForest(rows, 0.02), 0
	for _, r := range rows {
		if !f.Outside(r.Lo) && !f.Outside(r.Hi) {
			whole++
		}
	}
	if whole != 2 {
		t.Errorf("the axis has %d whole intervals of 4", whole)
	}
}

func TestForestAxis(t *testing.T) {
	for _, rows := range [][]Interval{nil, {{Change: 0.001, Lo: -0.001, Hi: 0.003}},
		{{Change: -0.76, Lo: -0.8, Hi: -0.7}, {Change: 1, Lo: 0.9, Hi: 1.1}}, {{Change: 1e6, Lo: 1, Hi: 1e9}}} {
		f := NewForest(rows, 0.02)
		figure := wellFormed(t, f.Axis())
		if !strings.Contains(figure, ">0</text>") {
			t.Errorf("the axis of %v has no zero: %s", rows, figure)
		}
		ticks := f.Ticks()
		for i, a := range ticks {
			for _, b := range ticks[:i] {
				if math.Abs(f.At(a)-f.At(b)) < 14.99 {
					t.Errorf("the labels of %v and %v overlap", a, b)
				}
			}
		}
	}
}

func TestHalvingAndDoublingAreEquallyFar(t *testing.T) {
	f := NewForest([]Interval{{Change: -0.5, Lo: -0.5, Hi: -0.5}, {Change: 1, Lo: 1, Hi: 1}}, 0.02)
	if l, r := f.At(0)-f.At(-0.5), f.At(1)-f.At(0); math.Abs(l-r) > 1e-9 {
		t.Errorf("halving is %v from zero, doubling %v", l, r)
	}
}

func plainLabels(ticks []float64) []string { return make([]string, len(ticks)) }

func TestDots(t *testing.T) {
	d := Dots{
		Columns: Columns{Height: 100, Count: 2, Scale: Linear(1, 10), Bounds: []float64{10, math.NaN()}, Labels: plainLabels},
		Blocks:  3, Titled: true,
		Sets: []DotColumn{
			{Median: 5, Runs: []Dot{{1, 4, Counts, "<one>"}, {2, 5, Counts, ""},
				{2, 9, Superseded, ""}, {3, 1, Invalid, "late"}}},
			{Median: math.NaN()},
		},
	}
	caption := Caption{"id", "<a & b>"}
	figure := wellFormed(t, d.Plot(caption))
	wellFormed(t, d.YAxis())
	for part, want := range map[string]int{
		`<circle class="dot"`: 2, `class="dot superseded"`: 1, `class="dot invalid"`: 1,
		`class="median"`: 1, `class="bound"`: 1, `class="between"`: 1,
		"&lt;one&gt;": 1, `<title id="id">&lt;a &amp; b&gt;</title>`: 1,
		`aria-labelledby="id"`: 1, `class="dots"`: 0,
	} {
		if got := strings.Count(figure, part); got != want {
			t.Errorf("%d times %s, want %d: %s", got, part, want, figure)
		}
	}
	d.Titled = false
	figure = wellFormed(t, d.Plot(caption))
	for part, want := range map[string]int{"<circle": 1, `class="dots"`: 1, `class="dot invalid"`: 1, "h0": 2} {
		if got := strings.Count(figure, part); got != want {
			t.Errorf("untitled, %d times %s, want %d: %s", got, part, want, figure)
		}
	}
	none := Dots{Columns: Columns{Scale: Linear(), Labels: plainLabels}}
	if strings.Contains(wellFormed(t, none.Plot(caption)), "median") {
		t.Error("a median is drawn of no runs")
	}
}

func TestColumnsKeepTheirDots(t *testing.T) {
	f := Columns{Count: 3}
	for i := range 3 {
		left, right := float64(i)*1000/3, float64(i+1)*1000/3
		if a, b := f.x(i, 0), f.x(i, 1); !(left < a && a < b && b < right) {
			t.Errorf("column %d from %v to %v draws from %v to %v", i, left, right, a, b)
		}
	}
}

func TestBoxes(t *testing.T) {
	d := Dots{
		Columns: Columns{Height: 108, Count: 2, Scale: Scale{Lo: 0, Hi: 10}, Labels: plainLabels},
		Sets:    []DotColumn{{Median: 3, Box: &Box{1, 2, 3, 4, 5}}, {Median: 3}},
	}
	figure := wellFormed(t, d.Plot(Caption{"b", "boxes"}))
	// The inner height is 92 from y = 8: 2 is at 81.6, 4 at 63.2; the whiskers end at 1 and 5.
	for part, want := range map[string]int{"Z": 1, " 81.6H": 1, "V63.2H": 1, " 90.8V81.6": 1, " 54V63.2": 1} {
		if got := strings.Count(figure, part); got != want {
			t.Errorf("%d times %q, want %d: %s", got, part, want, figure)
		}
	}
}

func TestBars(t *testing.T) {
	b := Bars{
		Columns: Columns{Height: 108, Count: 2, Scale: FromZero(4, 10), Labels: plainLabels},
		Sets:    [][]float64{{4, 10}, {math.NaN(), 5}},
	}
	figure := wellFormed(t, b.Plot(Caption{"p", "bars"}))
	for part, want := range map[string]int{`class="fill1"`: 1, `class="fill2"`: 2, "V100H": 3} {
		if got := strings.Count(figure, part); got != want {
			t.Errorf("%d times %q, want %d: %s", got, part, want, figure)
		}
	}
	if s := FromZero(5, 6); s.Lo != 0 {
		t.Errorf("bars are on %+v", s)
	}
}

func TestTraces(t *testing.T) {
	tr := Traces{
		Columns: Columns{Height: 108, Count: 1, Scale: Scale{Lo: 0, Hi: 10}, Labels: plainLabels},
		Longest: 0.4, Step: 0.1, Sets: []TraceColumn{{2, [][]float64{{5, 10, math.NaN(), 0}, {7}}}},
	}
	figure := wellFormed(t, tr.Plot(Caption{}))
	if want := `class="trace series3" d="m185 54h0l210-46m420 92h0m-630-64h0"`; !strings.Contains(figure, want) {
		t.Errorf("%s is not in %s", want, figure)
	}
}

func TestStrip(t *testing.T) {
	figure := wellFormed(t, Strip([]Span{{2, 0.5, 1, 0.5, false}, {0, 0.5, 1, 0.5, true}}, 4))
	if !strings.Contains(figure, `class="window" d="m125 11h250m250 0h250"`) ||
		!strings.Contains(figure, `class="setup" d="m0 11h1000"`) || strings.Count(figure, "dot invalid") != 1 {
		t.Error(figure)
	}
	sites := []Span{{Start: 1, Setup: 1, Valid: true}, {Start: 3, Cleanup: 1, Valid: true}}
	unmeasured := wellFormed(t, Strip(sites, 4))
	if !strings.Contains(unmeasured, `class="setup" d="m250 11h250m250 0h250"`) ||
		strings.Contains(unmeasured, `"window"`) {
		t.Errorf("without a window: %s", unmeasured)
	}
	wellFormed(t, Strip(nil, 0))
	var many []Span
	for i := range 100000 {
		many = append(many, Span{float64(i), 0.1, 0.8, 0.1, i%2 == 0})
	}
	if n := len(wellFormed(t, Strip(many, 1e5))); n > 30e3 {
		t.Errorf("100 000 runs take %d bytes", n)
	}
	for total, want := range map[float64]string{350: "4:00", 12: "0:10", 20000: "4:00:00", 1e7: ":00:00"} {
		if axis := wellFormed(t, StripAxis(total)); !strings.Contains(axis, want) || strings.Count(axis, "<text") > 8 {
			t.Errorf("the axis of %v s: %s", total, axis)
		}
	}
}

func TestCurves(t *testing.T) {
	c := Curves{Labels: plainLabels, Curves: []Curve{
		{0, []Point{{0, 1e-5}, {0.5, 2e-5}, {0.9, 3e-5}, {0.99, 9e-5}},
			[][]Point{{{0, 1e-5}, {0.9, 4e-5}}, {{0, 2e-5}}}},
		{3, []Point{{0, 1e-5}, {0.999, 1e-3}}, nil}, {1, nil, nil},
	}}
	figure := wellFormed(t, c.Plot(Caption{"c", `"latency"`}))
	wellFormed(t, c.YAxis())
	for part, want := range map[string]int{`class="curve series1"`: 1,
		`class="curve series4"`: 1, `class="thin series1"`: 1, "p99.9<": 1, "p99.99<": 0} {
		if got := strings.Count(figure, part); got != want {
			t.Errorf("%d times %s, want %d: %s", got, part, want, figure)
		}
	}
	wellFormed(t, Curves{Labels: plainLabels}.Plot(Caption{}))
	for i := range 20 {
		if n := StyleNumber(i); n < 1 || n > 6 {
			t.Errorf("StyleNumber(%d) = %d", i, n)
		}
	}
}

func TestInline(t *testing.T) {
	for share, want := range map[float64]string{0.5: `width="50%"`, 7: `width="100%"`, -1: `width="0%"`} {
		if got := wellFormed(t, Inline(share)); !strings.Contains(got, want) {
			t.Errorf("a bar of %v is %s", share, got)
		}
	}
	if Inline(math.NaN()) != "" {
		t.Error("a bar of nothing is drawn")
	}
}
