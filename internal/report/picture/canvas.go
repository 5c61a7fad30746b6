package picture

import (
	"fmt"
	"image"
	"image/draw"
	"math"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"github.com/knotmeter/knotmeter/internal/report/chart"
)

// density is the pixels of a point: wikis and chats show pictures on screens that have two for each.
const density = 2

// A style is how a text looks.
type style int

const (
	titleStyle style = iota
	leadStyle
	headingStyle
	plainStyle
	strongStyle
	smallStyle
	headlineStyle
)

// styles are the letters of each style and their size in points.
var styles = [...]struct {
	letters []byte
	size    float64
}{
	titleStyle: {gobold.TTF, 21}, leadStyle: {goregular.TTF, 14}, headingStyle: {gobold.TTF, 15},
	plainStyle: {goregular.TTF, 13}, strongStyle: {gobold.TTF, 13}, smallStyle: {goregular.TTF, 11.5},
	headlineStyle: {gobold.TTF, 16.5},
}

// newFonts opens the fonts of all styles.
func newFonts() (map[style]font.Face, error) {
	faces := map[style]font.Face{}
	for i, s := range styles {
		parsed, err := opentype.Parse(s.letters)
		if err != nil {
			return nil, fmt.Errorf("read the font: %w", err)
		}
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: s.size * density, DPI: 72})
		if err != nil {
			return nil, fmt.Errorf("open the font at %g points: %w", s.size, err)
		}
		faces[style(i)] = face
	}
	return faces, nil
}

// A canvas remembers what is drawn on it, in points from the top left corner: how high the image is, is known when
// all is drawn.
type canvas struct {
	strokes []func(*image.RGBA)
	fonts   map[style]font.Face
}

// image is all that was drawn.
func (c *canvas) image(width, height float64) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, pixels(width), pixels(height)))
	draw.Draw(img, img.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	for _, stroke := range c.strokes {
		stroke(img)
	}
	return img
}

func pixels(points float64) int { return int(math.Round(points * density)) }

// box fills a rectangle, at least one pixel wide and high.
func (c *canvas) box(x0, y0, x1, y1 float64, shade colour) {
	r := image.Rect(pixels(x0), pixels(y0), max(pixels(x1), pixels(x0)+1), max(pixels(y1), pixels(y0)+1))
	c.strokes = append(c.strokes, func(img *image.RGBA) {
		draw.Draw(img, r, image.NewUniform(shade), image.Point{}, draw.Over)
	})
}

type point struct{ x, y float64 }

// polygon fills a closed shape.
func (c *canvas) polygon(shade colour, corners ...point) {
	var b image.Rectangle // the pixels that hold all corners
	for _, p := range corners {
		x, y := p.x*density, p.y*density
		b = b.Union(image.Rect(int(math.Floor(x))-1, int(math.Floor(y))-1, int(math.Ceil(x))+1, int(math.Ceil(y))+1))
	}
	r := vector.NewRasterizer(b.Dx(), b.Dy())
	for i, p := range corners {
		to := r.LineTo
		if i == 0 {
			to = r.MoveTo
		}
		to(float32(p.x*density)-float32(b.Min.X), float32(p.y*density)-float32(b.Min.Y))
	}
	r.ClosePath()
	c.strokes = append(c.strokes, func(img *image.RGBA) { r.Draw(img, b, image.NewUniform(shade), image.Point{}) })
}

// disc fills a circle, as a polygon whose sides are shorter than a pixel.
func (c *canvas) disc(middle point, radius float64, shade colour) {
	corners := make([]point, 96)
	for i := range corners {
		sin, cos := math.Sincos(float64(i) / float64(len(corners)) * 2 * math.Pi)
		corners[i] = point{middle.x + radius*cos, middle.y + radius*sin}
	}
	c.polygon(shade, corners...)
}

// stroke is a straight line of a width.
func (c *canvas) stroke(a, b point, width float64, shade colour) {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return
	}
	dx, dy := (b.y-a.y)/length*width/2, (a.x-b.x)/length*width/2
	c.polygon(shade, point{a.x + dx, a.y + dy}, point{b.x + dx, b.y + dy},
		point{b.x - dx, b.y - dy}, point{a.x - dx, a.y - dy})
}

// An align says which point of a text its x is.
type align float64

const (
	left   align = 0
	middle align = 0.5
	right  align = 1
)

// text writes a line with its base line at y.
func (c *canvas) text(s string, at point, a align, look style, shade colour) {
	x := at.x - measure(c.fonts[look], s)*float64(a)
	c.strokes = append(c.strokes, func(img *image.RGBA) {
		d := font.Drawer{Dst: img, Src: image.NewUniform(shade), Face: c.fonts[look], Dot: fixed.P(pixels(x), pixels(at.y))}
		d.DrawString(s)
	})
}

// measure is the width of a text in points.
func measure(face font.Face, s string) float64 {
	return float64(font.MeasureString(face, s)) / 64 / density
}

// longest is how many letters of a text are looked at: a name may be of any length.
const longest = 500

// fit cuts the middle out of a text that is wider than so many points: names differ at their ends.
func fit(face font.Face, s string, width float64) string {
	if measure(face, s) <= width {
		return s
	}
	letters := []rune(s)
	for keep := min(len(letters)-1, longest); keep > 1; keep-- {
		cut := string(letters[:(keep+1)/2]) + "…" + string(letters[len(letters)-keep/2:])
		if measure(face, cut) <= width {
			return cut
		}
	}
	return "…"
}

// mark draws the shape of a verdict, a hollow circle for what is undecided.
func (c *canvas) mark(m chart.Mark, at point, size float64) {
	var corners []point
	for _, p := range m.Corners(size) {
		corners = append(corners, point{at.x + p[0], at.y + p[1]})
	}
	if len(corners) > 0 {
		c.polygon(shadeOf(m), corners...)
		return
	}
	c.disc(at, size*0.95, muted)
	c.disc(at, size*0.95-1.6, paper)
}

// lines breaks a text between words into at most so many lines of a width; what is too wide is cut.
func (c *canvas) lines(s string, look style, width float64, most int) []string {
	var list []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(list) < most-1 && measure(c.fonts[look], line+" "+word) > width {
			list, line = append(list, fit(c.fonts[look], line, width)), word
			continue
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line == "" {
		return list
	}
	return append(list, fit(c.fonts[look], line, width))
}
