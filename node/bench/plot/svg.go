package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// fonts are those of the systems that show pictures: a picture brings none.
const fonts = "Helvetica, Arial, 'Liberation Sans', sans-serif"

// A picture is the text of an SVG file.
type picture struct{ bytes.Buffer }

// open begins a picture with a white background, so that it can be read in dark viewers.
func open(wide, high float64, title string) *picture {
	p := &picture{}
	fmt.Fprintf(p, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%[2]s\" viewBox=\"0 0 %[1]s %[2]s\" role=\"img\" font-family=\"%s\">\n<title>",
		number(wide), number(high), fonts)
	p.escape(title)
	p.WriteString("</title>\n")
	p.rect(0, 0, wide, high, "#ffffff")
	return p
}

// group begins a group of elements of a class.
func (p *picture) group(class string) { fmt.Fprintf(p, "<g class=\"%s\">\n", class) }

// end ends a group.
func (p *picture) end() { p.WriteString("</g>\n") }

// close returns the whole picture.
func (p *picture) close() []byte {
	p.WriteString("</svg>\n")
	return p.Bytes()
}

func (p *picture) rect(x, y, wide, high float64, colour string) {
	fmt.Fprintf(p, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>\n", number(x), number(y), number(wide), number(high), colour)
}

func (p *picture) line(x1, y1, x2, y2, thick float64, colour string) {
	fmt.Fprintf(p, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" stroke=\"%s\" stroke-width=\"%s\"/>\n",
		number(x1), number(y1), number(x2), number(y2), colour, number(thick))
}

func (p *picture) circle(x, y, radius float64, colour string) {
	fmt.Fprintf(p, "<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\"/>\n", number(x), number(y), number(radius), colour)
}

// An anchor is the part of a text that stands at its place.
type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	ending anchor = "end"
)

// text writes a text whose middle is at y. Not all viewers know dominant-baseline.
func (p *picture) text(x, y, size float64, at anchor, colour, text string) {
	fmt.Fprintf(p, "<text x=\"%s\" y=\"%s\" font-size=\"%s\" text-anchor=\"%s\" fill=\"%s\">", number(x), number(y+size*0.35), number(size), at, colour)
	p.escape(text)
	p.WriteString("</text>\n")
}

// escape writes a text as XML. What XML can't have becomes U+FFFD.
func (p *picture) escape(text string) {
	_ = xml.EscapeText(p, []byte(text)) // a buffer takes all
}

// number writes a length with at most two decimals.
func number(x float64) string {
	x = math.Round(x*100) / 100
	if x == 0 {
		return "0" // never -0
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// width estimates how wide a text is, of a wide font.
func width(text string, size float64) float64 {
	ems := 0.0
	for _, r := range text {
		switch {
		case r >= 0x2e80: // ideographs
			ems++
		case r >= 0x80:
			ems += 0.62
		case r == 'm' || r == 'M' || r == 'W' || r == '%' || r == '@':
			ems += 0.9
		case r >= 'A' && r <= 'Z' && r != 'I' || r == 'w' || r == '+' || r == '=' || r == '<' || r == '>' || r == '&':
			ems += 0.7
		case bytes.IndexByte([]byte(" !'(),./:;I[]fijlrt|-"), byte(r)) >= 0:
			ems += 0.33
		default:
			ems += 0.56
		}
	}
	return ems * size * 1.08
}
