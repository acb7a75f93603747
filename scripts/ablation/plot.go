package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// The plot's measures, in pixels.
const (
	panelWide = 210
	labelWide = 260
	lineStep  = 20
	headHigh  = 56
	margin    = 14
	valueWide = 46 // right of a panel's scale
)

// drawn is the table as an SVG picture: a column for each graph, a line for each way, and
// in it the mean, as a dot, with the deviation to both sides.
func drawn(all []mean) []byte {
	var names, titles []string
	of := map[string]mean{}
	for _, m := range all {
		if len(titles) == 0 || titles[len(titles)-1] != m.title {
			titles = append(titles, m.title)
		}
		if m.title == titles[0] {
			names = append(names, m.name)
		}
		of[m.title+"/"+m.name] = m
	}
	wide, high := labelWide+panelWide*len(titles)+margin, headHigh+lineStep*len(names)+margin
	var s strings.Builder
	_, _ = fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", wide, high, wide, high)
	_, _ = fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", wide, high)
	write := func(x, y int, attributes, text string) {
		_, _ = fmt.Fprintf(&s, `<text x="%d" y="%d" %s>`, x, y, attributes)
		_ = xml.EscapeText(&s, []byte(text)) // a builder takes everything
		s.WriteString("</text>\n")
	}
	write(margin, margin+8, `fill="#222222" font-weight="bold"`, "test accuracy, percent: mean and deviation over seeds")
	for i, name := range names {
		write(labelWide-10, headHigh+i*lineStep+4, `fill="#222222" text-anchor="end"`, name)
	}
	for p, title := range titles {
		left := labelWide + p*panelWide
		write(left, headHigh-20, `fill="#666666"`, title)
		low, top := math.Inf(1), math.Inf(-1)
		for _, name := range names {
			if m := of[title+"/"+name]; m.done > 0 {
				low, top = min(low, m.test-m.deviation), max(top, m.test+m.deviation)
			}
		}
		at := func(x float64) int {
			return left + int((x-low)/max(top-low, 1e-9)*(panelWide-valueWide-10))
		}
		for i, name := range names {
			m := of[title+"/"+name]
			if m.done == 0 {
				continue
			}
			y := headHigh + i*lineStep
			_, _ = fmt.Fprintf(&s, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#9db7d2" stroke-width="3"/>`+"\n", at(m.test-m.deviation), y, at(m.test+m.deviation), y)
			_, _ = fmt.Fprintf(&s, `<circle cx="%d" cy="%d" r="4" fill="#3b6ea5"/>`+"\n", at(m.test), y)
			write(left+panelWide-valueWide, y+4, `fill="#222222"`, fmt.Sprintf("%.1f", m.test))
		}
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}
