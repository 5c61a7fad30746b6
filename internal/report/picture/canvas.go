package picture

import (
	"fmt"
	"image"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
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
)

// font is the style's letters and their size in points.
func (s style) font() (data []byte, size float64) {
	switch s {
	case titleStyle:
		return gobold.TTF, 21
	case leadStyle:
		return goregular.TTF, 14
	case headingStyle:
		return gobold.TTF, 15
	case strongStyle:
		return gobold.TTF, 13
	case smallStyle:
		return goregular.TTF, 11.5
	}
	return goregular.TTF, 13
}

// A canvas is an image that is drawn on in points, from the top left corner.
type canvas struct {
	image *image.RGBA
	fonts map[style]font.Face
}

// newFonts opens the fonts of all styles.
func newFonts() (map[style]font.Face, error) {
	faces := map[style]font.Face{}
	for s := titleStyle; s <= smallStyle; s++ {
		data, size := s.font()
		parsed, err := opentype.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("read the font: %w", err)
		}
		if faces[s], err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size * density, DPI: 72}); err != nil {
			return nil, fmt.Errorf("open the font at %g points: %w", size, err)
		}
	}
	return faces, nil
}

func newCanvas(width, height float64, fonts map[style]font.Face) *canvas {
	c := &canvas{image.NewRGBA(image.Rect(0, 0, pixels(width), pixels(height))), fonts}
	draw.Draw(c.image, c.image.Bounds(), image.NewUniform(paper), image.Point{}, draw.Src)
	return c
}

func pixels(points float64) int { return int(math.Round(points * density)) }

// box fills a rectangle, at least one pixel wide and high.
func (c *canvas) box(x0, y0, x1, y1 float64, shade colour) {
	r := image.Rect(pixels(x0), pixels(y0), max(pixels(x1), pixels(x0)+1), max(pixels(y1), pixels(y0)+1))
	draw.Draw(c.image, r, image.NewUniform(shade), image.Point{}, draw.Over)
}

type point struct{ x, y float64 }

// polygon fills a closed shape.
func (c *canvas) polygon(shade colour, corners ...point) {
	r, at := c.raster(corners)
	for i, p := range corners {
		x, y := at(p)
		if i == 0 {
			r.MoveTo(x, y)
			continue
		}
		r.LineTo(x, y)
	}
	c.fill(r, corners, shade)
}

// disc fills a circle, its quarters as Bézier curves.
func (c *canvas) disc(middle point, radius float64, shade colour) {
	corners := []point{{middle.x - radius, middle.y - radius}, {middle.x + radius, middle.y + radius}}
	r, at := c.raster(corners)
	const k = 0.5523 // of the radius: where the control points of a quarter stand
	x, y := at(point{middle.x + radius, middle.y})
	r.MoveTo(x, y)
	for i := range 4 {
		sin, cos := math.Sincos(float64(i) * math.Pi / 2)
		turned := func(a, b float64) (float32, float32) {
			return at(point{middle.x + radius*(a*cos-b*sin), middle.y + radius*(a*sin+b*cos)})
		}
		ax, ay := turned(1, k)
		bx, by := turned(k, 1)
		ex, ey := turned(0, 1)
		r.CubeTo(ax, ay, bx, by, ex, ey)
	}
	c.fill(r, corners, shade)
}

// raster is a rasteriser of the size of what is drawn, and what turns points into its pixels.
func (c *canvas) raster(corners []point) (*vector.Rasterizer, func(point) (float32, float32)) {
	b := bounds(corners)
	return vector.NewRasterizer(b.Dx(), b.Dy()), func(p point) (float32, float32) {
		return float32(p.x*density) - float32(b.Min.X), float32(p.y*density) - float32(b.Min.Y)
	}
}

func (c *canvas) fill(r *vector.Rasterizer, corners []point, shade colour) {
	r.ClosePath()
	r.Draw(c.image, bounds(corners), image.NewUniform(shade), image.Point{})
}

// bounds are the pixels that hold all corners.
func bounds(corners []point) image.Rectangle {
	var b image.Rectangle
	for _, p := range corners {
		x, y := p.x*density, p.y*density
		b = b.Union(image.Rect(int(math.Floor(x))-1, int(math.Floor(y))-1, int(math.Ceil(x))+1, int(math.Ceil(y))+1))
	}
	return b
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
	d := font.Drawer{Dst: c.image, Src: image.NewUniform(shade),
		Face: c.fonts[look], Dot: fixed.P(pixels(x), pixels(at.y))}
	d.DrawString(s)
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
