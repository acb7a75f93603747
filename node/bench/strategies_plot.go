package bench

import (
	"encoding/xml"
	"fmt"
	"os"
	"strings"
)

// The plot's measures, in pixels.
const (
	panelWide = 230
	labelWide = 190
	barHigh   = 16
	barStep   = 24
	headHigh  = 56
	margin    = 14
	valueWide = 62 // right of the longest bar
)

// A panel shows one number of each rung.
type panel struct {
	title string
	value func(Rung) float64
	text  string // how a value is written
}

var panels = []panel{
	{"requests for features, a step", func(r Rung) float64 { return r.Requests }, "%.0f"},
	{"rows that leave their node, a step", func(r Rung) float64 { return r.Remote }, "%.0f"},
	{"models, MB a step", func(r Rung) float64 { return r.Model / 1e6 }, "%.2f"},
	{"an epoch, seconds", func(r Rung) float64 { return r.Seconds }, "%.2f"},
}

// drawn is the ladder as an SVG picture: for each number a column of bars, each rung a
// row.
func drawn(rungs []Rung, under string) []byte {
	wide, high := labelWide+panelWide*len(panels)+margin, headHigh+barStep*len(rungs)+2*margin
	var s strings.Builder
	_, _ = fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", wide, high, wide, high)
	_, _ = fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", wide, high)
	write := func(x, y int, attributes, text string) {
		_, _ = fmt.Fprintf(&s, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, attributes, escaped(text))
	}
	write(margin, margin+8, `fill="#222222" font-weight="bold"`, under)
	for i, r := range rungs {
		write(labelWide-8, headHigh+i*barStep+barHigh-4, `fill="#222222" text-anchor="end"`, fmt.Sprintf("%s (%d)", r.Name, r.Slots))
	}
	write(labelWide-8, headHigh-10, `fill="#666666" text-anchor="end"`, "(slots)")
	for p, panel := range panels {
		left, most := labelWide+p*panelWide, 0.0
		for _, r := range rungs {
			most = max(most, panel.value(r))
		}
		write(left, headHigh-10, `fill="#666666"`, panel.title)
		for i, r := range rungs {
			v, long := panel.value(r), 0
			if most > 0 {
				long = int(v / most * (panelWide - valueWide))
			}
			top := headHigh + i*barStep
			_, _ = fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%d" height="%d" fill="#3b6ea5"/>`+"\n", left, top, max(1, long), barHigh)
			write(left+long+5, top+barHigh-4, `fill="#222222"`, fmt.Sprintf(panel.text, v))
		}
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}

func escaped(text string) string {
	var s strings.Builder
	_ = xml.EscapeText(&s, []byte(text)) // a builder takes everything
	return s.String()
}

// plot draws the ladder into a file; "": there is to be none.
func plot(file string, rungs []Rung, under string) error {
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, drawn(rungs, under), 0o644); err != nil { //nolint:gosec // a picture to be shown
		return fmt.Errorf("draw the ladder: %w", err)
	}
	return nil
}
