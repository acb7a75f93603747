package strategies

import (
	"cmp"
	"fmt"

	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// drawable returns an error unless the pictures that are asked for can be drawn.
func drawable(cfg bench.Config) error {
	if err := cmp.Or(plot.Check(cfg.Plot), plot.Check(cfg.PlotPipe)); err != nil {
		return err // before any file is made
	}
	return cmp.Or(result.Writable(cfg.Plot), result.Writable(cfg.PlotPipe))
}

// ladderChart draws the ladder of leap: a row for each step, a panel for each number.
func ladderChart(rows []LadderRow, title string) *plot.Chart {
	c := &plot.Chart{Title: title}
	for _, r := range rows {
		c.Rows = append(c.Rows, fmt.Sprintf("%s (%d)", r.Name, r.Slots))
	}
	for _, p := range []struct {
		title string
		value func(LadderRow) float64
		text  string // how a value is written
	}{
		{"requests for features, a step", func(r LadderRow) float64 { return r.Requests }, "%.0f"},
		{"rows that leave their node, a step", func(r LadderRow) float64 { return r.Remote }, "%.0f"},
		{"models, MB a step", func(r LadderRow) float64 { return r.Model / 1e6 }, "%.2f"},
		{"an epoch, seconds", func(r LadderRow) float64 { return r.Seconds }, "%.2f"},
	} {
		marks := make([]plot.Mark, len(rows))
		for i, r := range rows {
			marks[i] = plot.Mark{Value: p.value(r), Label: fmt.Sprintf(p.text, p.value(r))}
		}
		c.Panels = append(c.Panels, plot.Panel{Title: p.title, Marks: [][]plot.Mark{marks}})
	}
	return c
}

// pipeChart draws the times of pipe: a row for each case, with a bar for each arrangement
// that is as long as its seconds are of graph's.
func pipeChart(list []Piped) *plot.Chart {
	c := &plot.Chart{
		Title:  fmt.Sprintf("An epoch of %d layers, in parts of graph's time", deepLayers),
		Series: []string{"graph", "pipe, a stage a node", "pipe, two ways", "pipe, as chosen"},
	}
	marks := make([][]plot.Mark, len(c.Series))
	for i, p := range list {
		m := plot.Mark{Value: 1, Label: seconds(p.Seconds)}
		if p.Ratio > 0 {
			m.Value, m.Label = 1/p.Ratio, m.Label+", "+ratioText(p.Ratio)
		} else {
			c.Rows = append(c.Rows, fmt.Sprintf("%s, %s, %d, %s", p.Graph, p.Model, p.Nodes, rateOf(p.Rate)))
		}
		series := i % len(c.Series)
		marks[series] = append(marks[series], m)
	}
	c.Panels = []plot.Panel{{Marks: marks}}
	return c
}
