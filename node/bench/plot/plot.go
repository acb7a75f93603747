// Package plot draws what was measured as SVG: rows of bars or of means with deviations,
// side by side in panels. Benches and scripts draw all their pictures with it. It chooses
// no figures and runs nothing.
package plot

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// A Chart has a row for each thing that is compared, and a panel for each of its
// numbers.
type Chart struct {
	Title  string
	Rows   []string // labels, from top to bottom
	Series []string // names of what stands in a row together; fewer than two: there is no legend
	Panels []Panel
	// Dots draws each mark as a dot with its deviation, on a scale that fits the panel's
	// values; else marks are bars that begin at 0.
	Dots bool
}

// A Panel shows one number of each row.
type Panel struct {
	Title string
	Marks [][]Mark // for each series one of each row; rows at the end may be missing
}

// A Mark is a value in a panel.
type Mark struct {
	Value, Deviation float64
	Label            string // stands right of it
	Missing          bool   // nothing is drawn
}

// extension ends the names of pictures.
const extension = ".svg"

// largest is the largest number that is drawn. Differences of such numbers are finite.
const largest = 1e300

// Check returns an error unless a file's name says how it is drawn; "" is no file, and
// right.
func Check(file string) error {
	if file != "" && filepath.Ext(file) != extension {
		return fmt.Errorf("draw %s: pictures are SVG files: let its name end in %s", file, extension)
	}
	return nil
}

// Draw draws the chart into a file; "": there is to be none.
func (c *Chart) Draw(file string) error {
	if file == "" {
		return nil
	}
	if err := Check(file); err != nil {
		return err
	}
	picture, err := c.Encode(filepath.Ext(file)[1:])
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, picture, 0o644); err != nil { //nolint:gosec // a picture to be shown
		return fmt.Errorf("draw %q: %w", c.Title, err)
	}
	return nil
}

// Encode returns the chart as a picture in a format, of which there is one: svg.
func (c *Chart) Encode(format string) ([]byte, error) {
	if "."+format != extension {
		return nil, fmt.Errorf("draw %q: pictures are %s, not %q", c.Title, extension[1:], format)
	}
	if len(c.Rows) == 0 || len(c.Panels) == 0 {
		return nil, errors.New("draw a chart: there is nothing to be drawn")
	}
	for _, p := range c.Panels {
		if err := c.check(p); err != nil {
			return nil, fmt.Errorf("draw %q: %q: %w", c.Title, p.Title, err)
		}
	}
	return c.layout().draw(), nil
}

// check returns an error if a panel has marks that have no place in the chart.
func (c *Chart) check(p Panel) error {
	if most := max(1, len(c.Series)); len(p.Marks) > most {
		return fmt.Errorf("it has %d series, and the chart has %d", len(p.Marks), most)
	}
	for _, marks := range p.Marks {
		if len(marks) > len(c.Rows) {
			return fmt.Errorf("a series has %d marks, and the chart has %d rows", len(marks), len(c.Rows))
		}
		for i, m := range marks {
			for _, x := range []float64{m.Value, m.Deviation} {
				if !m.Missing && !(math.Abs(x) <= largest) {
					return fmt.Errorf("%q has the number %g, which can't be drawn", c.Rows[i], x)
				}
			}
			if !m.Missing && m.Deviation < 0 {
				return fmt.Errorf("%q has a deviation below 0: %g", c.Rows[i], m.Deviation)
			}
		}
	}
	return nil
}
