package picture

import (
	"image"
	"image/color"
)

// indexed turns an image into one of at most 256 colours, which as a PNG is a third of the size: a
// drawing has a dozen colours and the steps between them. Where there are more, each channel is
// rounded to fewer levels, of which white and black are always two.
func indexed(full *image.RGBA) *image.Paletted {
	for levels := 256; ; levels /= 2 {
		if drawn, ok := rounded(full, levels); ok {
			return drawn
		}
	}
}

// rounded is the image with so many levels of each channel, if that makes at most 256 colours; 4 levels
// always do, as 4^3 is 64.
func rounded(full *image.RGBA, levels int) (*image.Paletted, bool) {
	var table [256]uint8
	for v := range table {
		level := (v*(levels-1) + 127) / 255
		table[v] = uint8((level*255 + (levels-1)/2) / (levels - 1))
	}
	drawn, at := image.NewPaletted(full.Bounds(), nil), map[color.RGBA]int{}
	for i := range drawn.Pix {
		p := full.Pix[4*i : 4*i+3]
		c := color.RGBA{table[p[0]], table[p[1]], table[p[2]], 0xff}
		index, known := at[c]
		if !known {
			if index = len(at); index == 256 {
				return nil, false
			}
			at[c], drawn.Palette = index, append(drawn.Palette, c)
		}
		drawn.Pix[i] = uint8(index)
	}
	return drawn, true
}
