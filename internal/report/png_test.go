package report

import (
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/knotmeter/knotmeter/internal/compare"
)

func drawing(t *testing.T, in Input) image.Image {
	t.Helper()
	img, err := png.Decode(strings.NewReader(written(t, formatNamed(t, "png"), in)))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// A picture grows with the comparisons up to the limit, and by the line that counts the rest then.
func TestPNGHasAtMostSixtyRows(t *testing.T) {
	height := func(rows int) int {
		var list []compare.Row
		for i := range rows {
			list = append(list, row(fmt.Sprintf("kube:cluster-%d", i), 9,
				6, -0.3, -0.33, -0.26, compare.Different, compare.WorseThan))
		}
		return drawing(t, input(list...)).Bounds().Dy()
	}
	line := height(11) - height(10)
	if line <= 0 {
		t.Fatalf("a row is %d pixels high", line)
	}
	if got, want := height(mostDrawn)-height(10), line*(mostDrawn-10); got != want {
		t.Errorf("%d rows take %d pixels more than 10, want %d", mostDrawn, got, want)
	}
	if more := height(mostDrawn+1) - height(mostDrawn); more <= 0 || height(10*mostDrawn) != height(mostDrawn+1) {
		t.Errorf("one row above the limit takes %d pixels, %d rows take %d",
			more, 9*mostDrawn, height(10*mostDrawn)-height(mostDrawn))
	}
}

// The colours of better and worse are there for what is decided, and for nothing else.
func TestPNGColoursOnlyWhatIsDecided(t *testing.T) {
	const better, worse = 0x0b6e99, 0xb34a12
	verdicts := map[string]compare.Row{
		"worse":      row("lab:vxlan", 9, 6, -0.3, -0.33, -0.26, compare.Different, compare.WorseThan),
		"better":     row("lab:vxlan", 9, 12, 0.3, 0.26, 0.33, compare.Different, compare.BetterThan),
		"equivalent": row("lab:vxlan", 9, 9, 0.01, 0.005, 0.015, compare.Equivalent, compare.BetterThan),
		"undecided":  row("lab:vxlan", 9, 6, -0.3, -0.63, 0.26, compare.Undecided, compare.None),
	}
	for name, r := range verdicts {
		found := map[string]int{}
		img := drawing(t, input(r))
		for y := range img.Bounds().Dy() {
			for x := img.Bounds().Dx() / 4; x < img.Bounds().Dx(); x++ { // right of the legend's marks
				if y > img.Bounds().Dy()-200 {
					continue // the legend has all marks
				}
				r, g, b, _ := img.At(x, y).RGBA()
				switch rgb := r>>8<<16 | g>>8<<8 | b>>8; {
				case near(rgb, better):
					found["better"]++
				case near(rgb, worse):
					found["worse"]++
				}
			}
		}
		for _, colour := range []string{"better", "worse"} {
			if got := found[colour] > 0; got != (colour == name) {
				t.Errorf("%s: %d pixels in the colour of %s", name, found[colour], colour)
			}
		}
	}
}

// near allows for the rounding of colours to a palette.
func near(a, b uint32) bool {
	for shift := 0; shift < 24; shift += 8 {
		if d := int(a>>shift&0xff) - int(b>>shift&0xff); d < -9 || d > 9 {
			return false
		}
	}
	return true
}

func TestPictureTitleCountsManyTargets(t *testing.T) {
	var list []compare.Row
	for i := range 9 {
		list = append(list, row(fmt.Sprintf("kube:a-rather-long-name-%d", i),
			9, 6, -0.3, -0.33, -0.26, compare.Different, compare.WorseThan))
	}
	if got, want := pictureTitle(input(list...).Comparison), "9 targets against lab:native"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	got, want := pictureTitle(input(list[:1]...).Comparison), "kube:a-rather-long-name-0 against lab:native"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A card has the size that links want, whatever there is to say, and says it.
func TestCard(t *testing.T) {
	seen := map[string]string{}
	for name, in := range map[string]Input{
		"nothing": input(), "small": small(), "network": network(t), "long": poison(small(), strings.Repeat(" long", 200)),
	} {
		text := written(t, formatNamed(t, "card"), in)
		img, err := png.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if size := img.Bounds().Size(); size != image.Pt(1200, 630) {
			t.Errorf("the card of %s has %v pixels", name, size)
		}
		if other, same := seen[text]; same {
			t.Errorf("the cards of %s and %s are the same", name, other)
		}
		seen[text] = name
	}
}
