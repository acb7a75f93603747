package plot

import "math"

// The measures of a chart, in pixels.
const (
	panelWide = 210 // at least, with the labels of marks
	dataLeast = 90  // of it for bars or dots, at least
	rowHigh   = 20  // of a series
	barHigh   = 15
	radius    = 4
	headHigh  = 36
	titleHigh = 22 // of panels
	keyHigh   = 22 // of a line of the legend
	axisHigh  = 24
	gap       = 8
	margin    = 12
	large     = 15 // of the title's letters
	small     = 12
	tickSize  = 10
)

const (
	black = "#000000"
	grey  = "#595959" // of less important text
	rule  = "#e4e4e4" // lines from ticks
)

// colours of the series, in order, and paler ones for deviations. They are those that
// Okabe and Ito chose for colour-blind readers, with two dark ones for their yellow and black.
var colours = []struct{ full, pale string }{
	{"#0072b2", "#99c7e0"}, {"#e69f00", "#f5d999"}, {"#009e73", "#99d8c7"}, {"#cc79a7", "#ebc9dc"},
	{"#2b2b2b", "#aaaaaa"}, {"#56b4e9", "#bbe1f6"}, {"#d55e00", "#eebf99"}, {"#7f0000", "#cc9999"},
}

// A layout says where the parts of a chart stand.
type layout struct {
	chart      *Chart
	wide, high float64
	keys       []key
	panels     []area
	top        float64 // of the rows
	pitch      float64 // from a row to the next
}

// A key names a colour in the legend.
type key struct{ x, y float64 }

// An area is that of a panel.
type area struct {
	left  float64 // of the title
	zero  float64 // where the axis begins
	long  float64 // how long the axis is
	axis  axis
	empty bool // there is nothing to be drawn
}

// at returns where a value is.
func (a area) at(value float64) float64 { return a.zero + a.axis.part(value)*a.long }

// layout finds a place for everything.
func (c *Chart) layout() *layout {
	l := &layout{chart: c}
	names := 0.0
	for _, r := range c.Rows {
		names = math.Max(names, width(r, small))
	}
	x := margin + names + gap
	for _, p := range c.Panels {
		a, wide := c.area(p, x)
		l.panels = append(l.panels, a)
		x += wide + 2*gap
	}
	l.wide = math.Max(math.Max(x-2*gap, margin+names+2*panelWide), margin+width(c.Title, large)) + margin
	l.top = headHigh + l.legend() + titleHigh
	l.pitch = rowHigh
	if n := len(c.Series); n > 1 {
		l.pitch *= float64(n) + 0.5 // and some room between rows
	}
	l.high = l.top + l.pitch*float64(len(c.Rows)) + axisHigh + margin
	return l
}

// area returns the place of a panel that begins at x, and how wide it is. Labels of marks
// have room at its right.
func (c *Chart) area(p Panel, x float64) (a area, wide float64) {
	low, high, labels := math.Inf(1), math.Inf(-1), 0.0
	for _, marks := range p.Marks {
		for _, m := range marks {
			if m.Missing {
				continue
			}
			deviation := m.Deviation
			if !c.Dots {
				deviation = 0
			}
			low, high = math.Min(low, m.Value-deviation), math.Max(high, m.Value+deviation)
			labels = math.Max(labels, width(m.Label, small))
		}
	}
	a = area{left: x, zero: x, empty: low > high}
	inset := 0.0
	switch {
	case a.empty:
		low, high = 0, 1
	case c.Dots:
		inset = radius + 1
	default:
		low, high = math.Min(low, 0), math.Max(high, 0)
		if low == high {
			high = 1
		}
	}
	a.long = math.Max(panelWide-labels-gap, dataLeast) - 2*inset
	a.zero += inset
	a.axis = newAxis(low, high, a.long)
	return a, math.Max(a.long+2*inset+labels+gap, width(p.Title, small))
}

// legend finds the places of the series' names, and returns how high they are together.
func (l *layout) legend() float64 {
	if len(l.chart.Series) < 2 {
		return 0
	}
	x, y := float64(margin), headHigh+keyHigh/2.0
	for _, name := range l.chart.Series {
		wide := 1.5*small + width(name, small)
		if x > margin && x+wide > l.wide-margin {
			x, y = margin, y+keyHigh
		}
		l.wide = math.Max(l.wide, x+wide+margin)
		l.keys = append(l.keys, key{x, y})
		x += wide + 1.5*small
	}
	return y + keyHigh/2.0 - headHigh
}

// draw writes the picture.
func (l *layout) draw() []byte {
	p := open(l.wide, l.high, l.chart.Title)
	p.text(margin, headHigh/2.0, large, start, black, l.chart.Title)
	if len(l.keys) > 0 {
		p.group("legend")
		for i, k := range l.keys {
			p.rect(k.x, k.y-small/2.0, small, small, colours[i%len(colours)].full)
			p.text(k.x+1.5*small, k.y, small, start, grey, l.chart.Series[i])
		}
		p.end()
	}
	p.group("rows")
	for i, name := range l.chart.Rows {
		p.text(l.panels[0].left-gap, l.row(i), small, ending, black, name)
	}
	p.end()
	for i, a := range l.panels {
		p.group("panel")
		p.text(a.left, l.top-titleHigh/2.0, small, start, grey, l.chart.Panels[i].Title)
		if !a.empty {
			l.ticks(p, a)
			l.marks(p, a, l.chart.Panels[i].Marks)
		}
		p.end()
	}
	return p.close()
}

// row returns the middle of a row.
func (l *layout) row(i int) float64 { return l.top + l.pitch*(float64(i)+0.5) }

// offset returns how far below the middle of a row a series is.
func (l *layout) offset(series int) float64 {
	return rowHigh * (float64(series) - float64(max(1, len(l.chart.Series))-1)/2)
}

// ticks draws the axis below the rows.
func (l *layout) ticks(p *picture, a area) {
	p.group("axis")
	bottom := l.top + l.pitch*float64(len(l.chart.Rows))
	for _, t := range a.axis.ticks {
		p.line(a.at(t.value), l.top, a.at(t.value), bottom+4, 1, rule)
		p.text(a.at(t.value), bottom+12, tickSize, middle, grey, t.label)
	}
	p.line(a.zero, bottom, a.zero+a.long, bottom, 1, grey)
	p.end()
}

// marks draws the marks of a panel. The labels of bars stand right of each, those of dots
// below each other right of all.
func (l *layout) marks(p *picture, a area, of [][]Mark) {
	p.group("marks")
	l.each(of, func(series int, y float64, m Mark) {
		colour := colours[series%len(colours)]
		if l.chart.Dots {
			if m.Deviation > 0 {
				p.line(a.at(m.Value-m.Deviation), y, a.at(m.Value+m.Deviation), y, radius, colour.pale)
			}
			p.circle(a.at(m.Value), y, radius, colour.full)
			return
		}
		from, to := math.Min(a.at(0), a.at(m.Value)), math.Max(a.at(0), a.at(m.Value))
		p.rect(from, y-barHigh/2.0, to-from, barHigh, colour.full)
	})
	p.end()
	p.group("labels")
	l.each(of, func(_ int, y float64, m Mark) {
		x := a.at(math.Max(m.Value, 0)) + gap
		if l.chart.Dots {
			x = a.zero + a.long + radius + gap
		}
		p.text(x, y, small, start, black, m.Label)
	})
	p.end()
}

// each calls do with each mark that is not missing, and the middle of its place.
func (l *layout) each(of [][]Mark, do func(series int, y float64, m Mark)) {
	for series, marks := range of {
		for i, m := range marks {
			if !m.Missing {
				do(series, l.row(i)+l.offset(series), m)
			}
		}
	}
}
