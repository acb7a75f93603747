package bench

import (
	"fmt"
	"os"
	"strings"
)

// The picture's measures beside those of the ladder's, in pixels.
const (
	raceWide  = 520 // of the longest bar
	raceLabel = 150
	raceStep  = 12 // from bar to bar of a case
	raceGap   = 8
)

// colours of the arrangements, in their order.
var colours = []string{"#8a8a8a", "#3b6ea5", "#7fb2dd", "#5a9a68"}

// drawnRace is the times as an SVG picture: a bar for each arrangement, cases below each
// other, each as long as its seconds are of graph's.
func drawnRace(times []Piped) []byte {
	cases := len(times) / len(colours)
	wide, high := raceLabel+raceWide+2*margin+150, headHigh+cases*(len(colours)*raceStep+raceGap)+margin
	var s strings.Builder
	_, _ = fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", wide, high, wide, high)
	_, _ = fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", wide, high)
	write := func(x, y int, attributes, text string) {
		_, _ = fmt.Fprintf(&s, `<text x="%d" y="%d" %s>%s</text>`+"\n", x, y, attributes, escaped(text))
	}
	write(margin, margin+8, `fill="#222222" font-weight="bold"`, fmt.Sprintf("An epoch of %d layers, in parts of graph's time", deepLayers))
	for i, name := range []string{"graph", "pipe, a stage a node", "pipe, two ways", "pipe, as chosen"} {
		_, _ = fmt.Fprintf(&s, `<rect x="%d" y="%d" width="10" height="10" fill="%s"/>`+"\n", raceLabel+i*150, headHigh-26, colours[i])
		write(raceLabel+i*150+15, headHigh-17, `fill="#444444"`, name)
	}
	longest := 1.0
	for _, p := range times {
		if p.Ratio > 0 {
			longest = max(longest, 1/p.Ratio)
		}
	}
	for i, p := range times {
		at := i % len(colours)
		top := headHigh + i/len(colours)*(len(colours)*raceStep+raceGap) + at*raceStep
		part, said := 1.0, ""
		if p.Ratio > 0 {
			part, said = 1/p.Ratio, fmt.Sprintf(", %.2fx", p.Ratio)
		} else {
			write(raceLabel-8, top+raceStep+10, `fill="#222222" text-anchor="end"`, fmt.Sprintf("%s, %s, %d", p.Graph, p.Model, p.Nodes))
		}
		long := int(part / longest * raceWide)
		_, _ = fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", raceLabel, top, max(1, long), raceStep-2, colours[at])
		write(raceLabel+long+5, top+raceStep-3, `fill="#222222"`, fmt.Sprintf("%.2f s%s", p.Seconds, said))
	}
	s.WriteString("</svg>\n")
	return []byte(s.String())
}

// plotPiped draws the times into a file; "": there is to be none.
func plotPiped(file string, times []Piped) error {
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, drawnRace(times), 0o644); err != nil { //nolint:gosec // a picture to be shown
		return fmt.Errorf("draw the times of pipe: %w", err)
	}
	return nil
}
