package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/report/chart"
)

func row(m chart.Mark, change, lo, hi float64, primary bool) Row {
	return Row{
		Target: "lab:vxlan", Change: fmt.Sprintf("%+.1f %%", change*100), Range: "[lo, hi] %", Word: string(m),
		Interval: chart.Interval{Change: change, Lo: lo, Hi: hi, Mark: m, Primary: primary},
	}
}

func picture(rows ...Row) Picture {
	return Picture{
		Title: "A title", Summary: "A summary in one sentence.",
		Against: "lab:native", Delta: 0.02, Notes: []string{"A note."},
		Sections: []Section{{Title: "Primary comparisons", About: "About them.",
			Groups: []Group{{Case: "pod-pod/other/tcp-rr", Metric: "p50, lower is better", Primary: true, Rows: rows}}}},
	}
}

func drawn(t *testing.T, p Picture) *image.RGBA {
	t.Helper()
	d, err := newPage(p)
	if err != nil {
		t.Fatal(err)
	}
	return d.draw()
}

func at(img image.Image, x, y int) colour {
	r, g, b, _ := img.At(x, y).RGBA()
	return colour(r>>8<<16 | g>>8<<8 | b>>8)
}

// count is how many pixels of a rectangle, in points, have exactly a colour.
func count(img image.Image, x0, y0, x1, y1 float64, want colour) int {
	n := 0
	for y := pixels(y0); y < pixels(y1); y++ {
		for x := pixels(x0); x < pixels(x1); x++ {
			if at(img, x, y) == want {
				n++
			}
		}
	}
	return n
}

// firstRow is the top of the first row of [picture]'s plot, in points: where the band begins.
func firstRow(t *testing.T, img *image.RGBA) float64 {
	t.Helper()
	for y := range img.Bounds().Dy() {
		for x := pixels(plotLeft); x < pixels(plotRight); x++ {
			if at(img, x, y) == band {
				return float64(y) / density
			}
		}
	}
	t.Fatal("there is no band of differences that do not matter")
	return 0
}

func TestSize(t *testing.T) {
	one := drawn(t, picture(row(chart.Worse, -0.3, -0.33, -0.26, true)))
	two := drawn(t, picture(row(chart.Worse, -0.3, -0.33, -0.26, true), row(chart.Worse, -0.3, -0.33, -0.26, true)))
	if w := one.Bounds().Dx(); w != width*density {
		t.Errorf("the picture is %d pixels wide, want %d", w, width*density)
	}
	if more := two.Bounds().Dy() - one.Bounds().Dy(); more != rowHeight*density {
		t.Errorf("a row more makes the picture %d pixels higher, want %d", more, rowHeight*density)
	}
	for name, img := range map[string]image.Image{"one": one, "two": two} {
		b := img.Bounds()
		h := float64(b.Dy()) / density
		margins := count(img, 0, 0, edge-1, h, paper) + count(img, width-edge+1, 0, width, h, paper)
		if want := 2 * (edge - 1) * density * b.Dy(); margins != want {
			t.Errorf("%s: %d of %d pixels of the margins are empty", name, margins, want)
		}
	}
}

// A verdict is told by shape and colour; what is undecided is hollow and has neither colour.
func TestMarks(t *testing.T) {
	for _, test := range []struct {
		mark   chart.Mark
		middle colour
	}{{chart.Better, better}, {chart.Worse, worse}, {chart.Same, ink}, {chart.Undecided, paper}} {
		p := picture(row(test.mark, 0.1, 0.05, 0.15, true))
		img := drawn(t, p)
		x, top := (&page{axis: chart.NewForest(p.intervals(), p.Delta)}).x(0.1), firstRow(t, img)
		if got := at(img, pixels(x), pixels(top+rowHeight/2)); got != test.middle {
			t.Errorf("%s: the middle of the mark is %06x, want %06x", test.mark, got, test.middle)
		}
		for _, shade := range []colour{better, worse} {
			drawn := count(img, plotLeft, top, width, top+rowHeight, shade)
			if wanted := shade == test.middle; (drawn > 0) != wanted {
				t.Errorf("%s: %d pixels of the row are %06x", test.mark, drawn, shade)
			}
		}
	}
}

func TestShapesDiffer(t *testing.T) {
	half := func(m chart.Mark, from, to float64) int {
		p := picture(row(m, 0.1, 0.1, 0.1, true))
		img := drawn(t, p)
		x, top := (&page{axis: chart.NewForest(p.intervals(), p.Delta)}).x(0.1), firstRow(t, img)
		return count(img, x-9, top+from, x+9, top+to, shadeOf(m))
	}
	upper, lower := half(chart.Better, 4, 12), half(chart.Better, 12, 20)
	if upper*2 > lower*3/2 {
		t.Errorf("better does not point up: %d pixels above, %d below", upper, lower)
	}
	upper, lower = half(chart.Worse, 4, 12), half(chart.Worse, 12, 20)
	if lower*2 > upper*3/2 {
		t.Errorf("worse does not point down: %d pixels above, %d below", upper, lower)
	}
}

func TestPrimaryIsBolder(t *testing.T) {
	ground := func(primary bool) int {
		p := picture(row(chart.Worse, -0.3, -0.4, -0.2, primary))
		p.Sections[0].Groups[0].Primary = primary
		img := drawn(t, p)
		top := firstRow(t, img)
		return count(img, plotLeft, top, width, top+rowHeight, worse)
	}
	if bold, usual := ground(true), ground(false); bold < usual*4/3 {
		t.Errorf("a primary row has %d coloured pixels, an exploratory one %d", bold, usual)
	}
}

// An end without bound is an arrow at the edge of the plot, and nothing is drawn beyond.
func TestUnbounded(t *testing.T) {
	img := drawn(t, picture(row(chart.Worse, -0.3, math.Inf(-1), math.Inf(1), true)))
	top := firstRow(t, img)
	if n := count(img, plotLeft-3, top, plotLeft+12, top+rowHeight, worse); n < 40 {
		t.Errorf("the left end has %d coloured pixels, which is no arrow", n)
	}
	empty := (changeRight - 60 - plotRight - 3) * density * rowHeight * density
	if n := count(img, plotRight+3, top, changeRight-60, top+rowHeight, paper); n != empty {
		t.Errorf("something is drawn right of the plot")
	}
}

func TestNothingKnown(t *testing.T) {
	img := drawn(t, picture(row(chart.Undecided, math.NaN(), math.NaN(), math.NaN(), true)))
	top := firstRow(t, img)
	if n := count(img, plotLeft, top, plotRight, top+rowHeight, muted); n > 0 {
		t.Errorf("%d pixels are drawn of an interval that is not known", n)
	}
	drawn(t, Picture{})
}

func TestLongNamesStayInTheirColumn(t *testing.T) {
	r := row(chart.Worse, -0.3, -0.4, -0.2, true)
	r.Target, r.Word = strings.Repeat("kube:a-long-name-", 300), strings.Repeat("word", 60)
	p := picture(r)
	p.Sections[0].Groups[0].Case = strings.Repeat("pod-pod/other/", 500)
	p.Title, p.Against = strings.Repeat("x", 5000), strings.Repeat("y", 500)
	img := drawn(t, p)
	top := firstRow(t, img)
	gap := float64(plotLeft - edge - targetWidth - 2)
	empty := int(gap) * density * rowHeight * density
	if n := count(img, edge+targetWidth+1, top, edge+targetWidth+1+gap, top+rowHeight, paper); n != empty {
		t.Error("a long name runs into the plot")
	}
	b := img.Bounds()
	if n := count(img, width-8, 0, width, float64(b.Dy())/density, paper); n != 8*density*b.Dy() {
		t.Error("a long text runs over the edge")
	}
}

func TestFit(t *testing.T) {
	fonts, err := newFonts()
	if err != nil {
		t.Fatal(err)
	}
	face := fonts[plainStyle]
	for _, test := range []struct {
		text  string
		width float64
		want  string
	}{
		{"lab:native", 100, "lab:native"},
		{"", 10, ""},
		{"lab:native?mtu=9000&label=a", 0, "…"},
		{"lab:vxlan+wireguard", 90, "lab:vx…eguard"},
	} {
		got := fit(face, test.text, test.width)
		if got != test.want {
			t.Errorf("fit(%q, %g) = %q, want %q", test.text, test.width, got, test.want)
		}
		if test.width > 0 && measure(face, got) > test.width {
			t.Errorf("%q is %g wide", got, measure(face, got))
		}
	}
}

// What is encoded has at most 256 colours and looks like what was drawn.
func TestEncode(t *testing.T) {
	p := picture(row(chart.Worse, -0.3, -0.33, -0.26, true),
		row(chart.Better, 0.4, 0.3, 0.5, true), row(chart.Undecided, 0, -0.1, 0.1, true))
	var b bytes.Buffer
	if err := Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	read, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := read.(*image.Paletted); !ok {
		t.Errorf("the PNG is a %T", read)
	}
	want := drawn(t, p)
	if read.Bounds() != want.Bounds() {
		t.Fatalf("the PNG has %v, want %v", read.Bounds(), want.Bounds())
	}
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			a, b := at(read, x, y), at(want, x, y)
			for shift := 0; shift < 24; shift += 8 {
				if d := int(a>>shift&0xff) - int(b>>shift&0xff); d < -9 || d > 9 {
					t.Fatalf("pixel %d,%d is %06x, drawn as %06x", x, y, a, b)
				}
			}
		}
	}
}

func TestIndexedTakesAnyColours(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 256, 64))
	for y := range 64 {
		for x := range 256 {
			img.Set(x, y, color.RGBA{uint8(x), uint8(y * 4), uint8(x ^ y), 0xff})
		}
	}
	if n := len(indexed(img).Palette); n > 256 {
		t.Errorf("%d colours", n)
	}
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestEncodeReportsAWriteError(t *testing.T) {
	if err := Encode(full{}, picture()); !errors.Is(err, errFull) {
		t.Errorf("%v is not the writer's error", err)
	}
}
