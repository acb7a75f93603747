package cli

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// paint colours text, or leaves it as it is.
type paint bool

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	purple = "35"
	cyan   = "36"
)

func (p paint) in(colour, s string) string {
	if !p || s == "" || colour == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[m"
}

// state colours the states of nodes and of jobs.
func (p paint) state(s string) string {
	colour := ""
	switch s {
	case "alive", "running":
		colour = green
	case "queued", "stopped":
		colour = yellow
	case "failed":
		colour = red
	case "left":
		colour = dim
	}
	return p.in(colour, cell(s))
}

// fit cuts a line to what a window has room for.
func fit(line string, width int) string {
	return ansi.Truncate(line, max(width, 0), "…")
}

// wrapped is text in lines of a width, those after the first a little to the right.
func wrapped(text string, width int) []string {
	lines := strings.Split(ansi.Wrap(text, max(width-2, 1), ""), "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// columns aligns cells as they are seen, whatever bytes colours take. Columns are
// aligned to the right from the given one on.
func columns(rows [][]string, right int) []string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(c))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, c := range row {
			space := strings.Repeat(" ", widths[i]-ansi.StringWidth(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if i >= right {
				b.WriteString(space + c)
			} else {
				b.WriteString(c + space)
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// bar shows a share of something that is to become whole.
func bar(share float64, width int) string {
	if !(share > 0) { // also what is no number
		share = 0
	}
	full := int(math.Floor(min(share, 1) * float64(width)))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// portions divides a width by the sizes of parts: no part is more than one off its
// share, and all together have the width, or nothing if no part has a size.
func portions(sizes []float64, width int) []int {
	of := make([]int, len(sizes))
	sum := 0.0
	for _, s := range sizes {
		if s > 0 {
			sum += s
		}
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return of
	}
	until, before := 0.0, 0
	for i, s := range sizes {
		if s > 0 {
			until += s
		}
		end := min(int(math.Round(until/sum*float64(width))), width)
		of[i], before = end-before, end
	}
	return of
}
