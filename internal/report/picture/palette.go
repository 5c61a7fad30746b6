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
	drawn := image.NewPaletted(full.Bounds(), nil)
	at := map[[3]uint8]uint8{}
	var last [3]uint8 // most pixels are of the colour before them
	var index uint8
	var table [256]uint8
	for v := range table {
		level := (v*(levels-1) + 127) / 255
		table[v] = uint8((level*255 + (levels-1)/2) / (levels - 1))
	}
	for i := range drawn.Pix {
		p := full.Pix[4*i : 4*i+3]
		key := [3]uint8{table[p[0]], table[p[1]], table[p[2]]}
		if key == last && i > 0 {
			drawn.Pix[i] = index
			continue
		}
		known := false
		if index, known = at[key]; !known {
			if len(drawn.Palette) == 256 {
				return nil, false
			}
			index = uint8(len(drawn.Palette))
			at[key] = index
			drawn.Palette = append(drawn.Palette, color.RGBA{key[0], key[1], key[2], 0xff})
		}
		drawn.Pix[i], last = index, key
	}
	return drawn, true
}
