package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
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

// drawn is the second table as an SVG picture: a column for each graph, a line for each
// way, and in it the mean, as a dot, with the deviation to both sides.
func drawn(all means) []byte {
	var names []string
	for _, w := range ways() {
		if slices.ContainsFunc(all, func(m mean) bool { return m.shape == usual && m.name == w.name }) {
			names = append(names, w.name)
		}
	}
	var graphs []subject
	for _, s := range subjects() {
		if len(all.waysOf(s)) > 0 {
			graphs = append(graphs, s)
		}
	}
	wide, high := labelWide+panelWide*len(graphs)+margin, headHigh+lineStep*len(names)+margin
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
	for p, graph := range graphs {
		left := labelWide + p*panelWide
		write(left, headHigh-20, `fill="#666666"`, graph.title)
		low, top := math.Inf(1), math.Inf(-1)
		for _, name := range names {
			if m, _ := all.of(graph, usual, name); m.Done > 0 {
				low, top = min(low, m.Test-m.Deviation), max(top, m.Test+m.Deviation)
			}
		}
		at := func(x float64) int {
			return left + int((x-low)/max(top-low, 1e-9)*(panelWide-valueWide-10))
		}
		for i, name := range names {
			m, _ := all.of(graph, usual, name)
			if m.Done == 0 {
				continue
			}
			y := headHigh + i*lineStep
			_, _ = fmt.Fprintf(&s, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#9db7d2" stroke-width="3"/>`+"\n", at(m.Test-m.Deviation), y, at(m.Test+m.Deviation), y)
			_, _ = fmt.Fprintf(&s, `<circle cx="%d" cy="%d" r="4" fill="#3b6ea5"/>`+"\n", at(m.Test), y)
			write(left+panelWide-valueWide, y+4, `fill="#222222"`, fmt.Sprintf("%.1f", m.Test))
		}
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}
