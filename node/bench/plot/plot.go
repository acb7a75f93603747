// Package plot draws what was measured: rows of bars or of means with deviations, side
// by side in panels. Benches and scripts draw all their pictures with it. It chooses no
// figures and runs nothing.
package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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
	Marks [][]Mark // for each series one of each row
}

// A Mark is a value in a panel.
type Mark struct {
	Value, Deviation float64
	Label            string // stands right of it
	Missing          bool   // nothing is drawn
}

// formats are the extensions of files that can be drawn.
var formats = []string{".svg", ".png"}

// The measures of a chart.
const (
	panelWide = 2.2 * vg.Inch
	labelWide = 0.075 * vg.Inch // of a letter of the longest label
	headHigh  = 0.4 * vg.Inch
	legend    = 0.25 * vg.Inch
	titleHigh = 0.2 * vg.Inch // of panels
	rowHigh   = 0.2 * vg.Inch // of a series
	margin    = 0.1 * vg.Inch
	small     = 9 // of letters
	labelRoom = 1.45
)

// colours of the series, in order.
var colours = []color.Color{
	color.RGBA{0x3b, 0x6e, 0xa5, 0xff}, color.RGBA{0xd9, 0x8e, 0x3c, 0xff}, color.RGBA{0x5a, 0x9a, 0x68, 0xff}, color.RGBA{0x8a, 0x8a, 0x8a, 0xff},
}

var (
	grey = color.RGBA{0x66, 0x66, 0x66, 0xff}
	pale = color.RGBA{0x9d, 0xb7, 0xd2, 0xff}
)

// Check returns an error unless a file's name says how it is drawn; "" is no file, and
// right.
func Check(file string) error {
	if file != "" && !slices.Contains(formats, filepath.Ext(file)) {
		return fmt.Errorf("draw %s: a picture is an SVG or a PNG file: let its name end in %s", file, strings.Join(formats, " or "))
	}
	return nil
}

// Draw draws the chart into a file of one of the formats; "": there is to be none.
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

// Encode returns the chart as a picture in a format, svg or png.
func (c *Chart) Encode(format string) ([]byte, error) {
	if len(c.Rows) == 0 || len(c.Panels) == 0 {
		return nil, errors.New("draw a chart: there is nothing to be drawn")
	}
	longest := 0
	for _, r := range c.Rows {
		longest = max(longest, len(r))
	}
	head := vg.Length(headHigh + titleHigh)
	if len(c.Series) > 1 {
		head += legend
	}
	rows := vg.Length(len(c.Rows))
	high := head + rows*rowHigh + 2*margin
	if n := len(c.Series); n > 1 {
		high += rows * rowHigh * (vg.Length(n-1) + 0.5) // and some room between rows
	}
	wide := panelWide*vg.Length(max(2, len(c.Panels))) + labelWide*vg.Length(longest) + 2*margin
	to, err := draw.NewFormattedCanvas(wide, high, format)
	if err != nil {
		return nil, fmt.Errorf("draw %q: %w", c.Title, err)
	}
	canvas := draw.New(to)
	canvas.FillPolygon(color.White, []vg.Point{{}, {X: wide}, {X: wide, Y: high}, {Y: high}})
	c.heading(canvas)
	plots := make([]*plot.Plot, len(c.Panels))
	for i := range c.Panels {
		if plots[i], err = c.panel(i); err != nil {
			return nil, fmt.Errorf("draw %q: %w", c.Title, err)
		}
	}
	body := draw.Crop(canvas, margin, -margin, margin, -head)
	for i, at := range plot.Align([][]*plot.Plot{plots}, draw.Tiles{Rows: 1, Cols: len(plots)}, body)[0] {
		plots[i].Draw(at)
		canvas.FillText(style(grey, small), vg.Point{X: plots[i].DataCanvas(at).Min.X, Y: high - head + titleHigh/2}, c.Panels[i].Title)
	}
	var picture bytes.Buffer
	if _, err := to.WriteTo(&picture); err != nil {
		return nil, fmt.Errorf("draw %q: %w", c.Title, err)
	}
	return picture.Bytes(), nil
}

// style is how text of a colour is written.
func style(of color.Color, size vg.Length) text.Style {
	return text.Style{Color: of, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size), Handler: plot.DefaultTextHandler, YAlign: text.YCenter}
}

// heading writes the title and what the colours stand for.
func (c *Chart) heading(on draw.Canvas) {
	top := on.Max.Y - headHigh/2
	on.FillText(style(color.Black, small+2), vg.Point{X: on.Min.X + margin, Y: top}, c.Title)
	if len(c.Series) < 2 {
		return
	}
	y, x := top-legend, on.Min.X+margin
	named := style(grey, small)
	for i, name := range c.Series {
		on.FillPolygon(colours[i%len(colours)], []vg.Point{{X: x, Y: y - small/2}, {X: x + small, Y: y - small/2}, {X: x + small, Y: y + small/2}, {X: x, Y: y + small/2}})
		on.FillText(named, vg.Point{X: x + small*1.5, Y: y}, name)
		x += 3*small + named.Width(name)
	}
}

// panel makes the plot of one panel. The first one has the labels of the rows.
func (c *Chart) panel(at int) (*plot.Plot, error) {
	of := c.Panels[at]
	p := plot.New()
	p.HideX()
	p.HideY()
	if at == 0 {
		names := slices.Clone(c.Rows)
		slices.Reverse(names)
		p.NominalY(names...)
		p.Y.Tick.Label = style(color.Black, small)
		p.Y.Tick.Label.XAlign = text.XRight
	}
	for i, marks := range of.Marks {
		add := c.bars
		if c.Dots {
			add = c.dots
		}
		if err := add(p, marks, i); err != nil {
			return nil, err
		}
	}
	p.Y.Min, p.Y.Max = -0.5, float64(len(c.Rows))-0.5
	low, most := c.scale(of)
	p.X.Min, p.X.Max = low, low+(most-low)*labelRoom // what is right of the longest is for labels
	return p, nil
}

// scale is from where to where a panel's values are, which is some distance.
func (c *Chart) scale(of Panel) (low, most float64) {
	low, most = math.Inf(1), math.Inf(-1)
	for _, marks := range of.Marks {
		for _, m := range marks {
			if !m.Missing {
				low, most = min(low, m.Value-m.Deviation), max(most, m.Value+m.Deviation)
			}
		}
	}
	if !c.Dots || low > most {
		low = 0
	}
	return low, max(most, low+1e-9)
}

// offset is how far from the middle of a row a series is.
func (c *Chart) offset(series int) vg.Length {
	return rowHigh * vg.Length(float64(max(1, len(c.Series))-1)/2-float64(series))
}

// bars adds the bars of a series.
func (c *Chart) bars(p *plot.Plot, marks []Mark, series int) error {
	values := make(plotter.Values, len(marks))
	for i, m := range marks {
		if !m.Missing {
			values[len(marks)-1-i] = m.Value
		}
	}
	bars, err := plotter.NewBarChart(values, rowHigh*0.75)
	if err != nil {
		return err
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width, bars.Offset = true, colours[series%len(colours)], 0, c.offset(series)
	p.Add(bars)
	return c.labels(p, marks, series)
}

// dots adds the dots of a series with their deviations.
func (c *Chart) dots(p *plot.Plot, marks []Mark, series int) error {
	var at struct {
		plotter.XYs
		plotter.XErrors
	}
	for i, m := range marks {
		if !m.Missing {
			at.XYs = append(at.XYs, plotter.XY{X: m.Value, Y: float64(len(marks) - 1 - i)})
			at.XErrors = append(at.XErrors, struct{ Low, High float64 }{-m.Deviation, m.Deviation})
		}
	}
	if len(at.XYs) == 0 {
		return nil
	}
	deviations, err := plotter.NewXErrorBars(at)
	if err != nil {
		return err
	}
	deviations.Color, deviations.Width, deviations.CapWidth = pale, vg.Points(3), 0
	dots, err := plotter.NewScatter(at.XYs)
	if err != nil {
		return err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: colours[series%len(colours)], Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	p.Add(deviations, dots)
	return c.labels(p, marks, series)
}

// labels writes the labels of a series, right of its bars, or below each other right of
// all dots.
func (c *Chart) labels(p *plot.Plot, marks []Mark, series int) error {
	var at plotter.XYLabels
	most := 0.0
	for i, m := range marks {
		if !m.Missing {
			at.XYs, at.Labels = append(at.XYs, plotter.XY{X: m.Value, Y: float64(len(marks) - 1 - i)}), append(at.Labels, m.Label)
			most = max(most, m.Value+m.Deviation)
		}
	}
	if len(at.Labels) == 0 {
		return nil
	}
	if c.Dots {
		for i := range at.XYs {
			at.XYs[i].X = most
		}
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i] = style(color.Black, small)
	}
	labels.Offset = vg.Point{X: vg.Points(5), Y: c.offset(series)}
	p.Add(labels)
	return nil
}
