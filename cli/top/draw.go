package top

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/hopmesh/hopmesh/cli/output"
)

// paint colours text if it is true.
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

// state colours a state of a node or a job.
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
	return p.in(colour, output.Cell(s))
}

// fit cuts a line to the width of a window.
func fit(line string, width int) string {
	return ansi.Truncate(line, max(width, 0), "…")
}

// wrapped returns text in lines of a width. Lines after the first are indented.
func wrapped(text string, width int) []string {
	lines := strings.Split(ansi.Wrap(text, max(width-2, 1), ""), "\n")
	for i := 1; i < len(lines); i++ {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// columns aligns cells by their visible width. Columns from the given one on are aligned to
// the right.
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

// portions divides a width among parts by their sizes, exactly up to rounding. It returns zeros
// if no part has a size.
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
