package chart

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// colourVisions are kinds of colour vision as matrices for linear sRGB: complete protanopia, deuteranopia and
// tritanopia by Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color Vision
// Deficiency, 2009, table 1.
var colourVisions = map[string][3][3]float64{
	"usual":        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// cielab returns a colour as perceived with a kind of colour vision, in CIELAB with the white point D65.
func cielab(t *testing.T, colour string, vision [3][3]float64) [3]float64 {
	t.Helper()
	var linear, seen [3]float64
	for i := range linear {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if linear[i] = float64(n) / 255; linear[i] <= 0.04045 {
			linear[i] /= 12.92
		} else {
			linear[i] = math.Pow((linear[i]+0.055)/1.055, 2.4)
		}
	}
	for i, row := range vision {
		for k, part := range row {
			seen[i] += part * linear[k]
		}
		seen[i] = min(max(seen[i], 0), 1)
	}
	f := func(r, g, b float64) float64 {
		v := r*seen[0] + g*seen[1] + b*seen[2]
		if v > 216.0/24389 {
			return math.Cbrt(v)
		}
		return (24389.0/27*v + 16) / 116
	}
	x, y := f(0.4339, 0.3762, 0.1899), f(0.2127, 0.7152, 0.0722)
	z := f(0.0178, 0.1095, 0.8727)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// TestColoursAreToldApart checks that the colours of targets, and those of better and worse, can be distinguished with
// every kind of colour vision, on light and dark backgrounds. A distance of 2.3 in CIELAB is just noticeable side by
// side; small marks that are apart need several times that.
func TestColoursAreToldApart(t *testing.T) {
	const least = 15
	schemes := strings.SplitN(Style(), "@media", 3)
	for name, css := range map[string]string{"light": schemes[0], "dark": schemes[1]} {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--(s\d|better|worse): (#[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
			if colours[m[1]] == "" {
				colours[m[1]] = m[2]
			}
		}
		if len(colours) != 8 {
			t.Fatalf("%s has %q", name, colours)
		}
		names := slices.Sorted(maps.Keys(colours))
		for vision, matrix := range colourVisions {
			for i, a := range names {
				for _, b := range names[:i] {
					if (a[0] == 's') != (b[0] == 's') {
						continue // no figure has colours of targets and of verdicts together
					}
					one, two := cielab(t, colours[a], matrix), cielab(t, colours[b], matrix)
					if d := math.Hypot(math.Hypot(one[0]-two[0], one[1]-two[1]), one[2]-two[2]); d < least {
						t.Errorf("%s, %s: %s and %s are %.1f apart", name, vision, a, b, d)
					}
				}
			}
		}
	}
}
