package plot

import (
	"fmt"
	"math"
	"testing"
)

type triple [3]float64

// blindness has what linear red, green and blue become for readers who lack one kind of
// cones (Machado, Oliveira and Fernandes, 2009).
var blindness = map[string][3]triple{
	"none":         {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

func times3(m [3]triple, v triple) (out triple) {
	for i := range out {
		out[i] = m[i][0]*v[0] + m[i][1]*v[1] + m[i][2]*v[2]
	}
	return out
}

// linear returns the linear red, green and blue of a colour like #0072b2.
func linear(t *testing.T, colour string) (out triple) {
	t.Helper()
	var rgb [3]uint8
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		t.Fatalf("%s: %v", colour, err)
	}
	for i, c := range rgb {
		x := float64(c) / 255
		if out[i] = x / 12.92; x > 0.04045 {
			out[i] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	return out
}

// lab returns a colour in CIE L*a*b*, where distances are as large as they look.
func lab(rgb triple) triple {
	xyz := times3([3]triple{{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}, rgb)
	white := triple{0.9505, 1, 1.089}
	var f triple
	for i := range f {
		x := max(0, xyz[i]/white[i])
		if f[i] = 7.787*x + 16.0/116; x > 0.008856 {
			f[i] = math.Cbrt(x)
		}
	}
	return triple{116*f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])}
}

func TestColoursDifferForColourBlindReaders(t *testing.T) {
	const least = 15 // a difference of 2 to 3 is just visible
	for name, seen := range blindness {
		for i, a := range colours {
			for _, b := range append(colours[i+1:len(colours):len(colours)], struct{ full, pale string }{full: "#ffffff"}) {
				x, y := lab(times3(seen, linear(t, a.full))), lab(times3(seen, linear(t, b.full)))
				if d := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2]); d < least {
					t.Errorf("%s: %s and %s differ by %.1f, want %d", name, a.full, b.full, d, least)
				}
			}
		}
	}
}
