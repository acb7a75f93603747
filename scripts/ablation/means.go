package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// mean is the mean over the seeds of a row.
type mean struct {
	row
	runs.Mean
}

// means holds the means of all requested rows, in order.
type means []mean

func read(list []row, k *runs.Kept) (all means, err error) {
	for _, r := range list {
		m, err := k.Of(r.run())
		if err != nil {
			return nil, err
		}
		all = append(all, mean{r, m})
	}
	return all, nil
}

// of returns the mean of a way, if it was requested.
func (all means) of(s subject, m shape, way string) (mean, bool) {
	at := slices.IndexFunc(all, func(o mean) bool { return o.graph == s.graph && o.shape == m && o.name == way })
	if at < 0 {
		return mean{}, false
	}
	return all[at], true
}

func (m *mean) text() string { return m.Text(m.seeds) }

// bar is how far below one machine groups with a halo and sweep may be, in points.
const bar = 1.0

// beside returns the text of a mean, with its difference from that of one machine in
// points.
func (m *mean) beside(one *mean) string {
	text := m.text()
	if m.Done == 0 || one.Done == 0 {
		return text
	}
	text += fmt.Sprintf(" (%+.2f)", m.Test-one.Test)
	if (m.name == full || m.name == pair || m.name == scattered) && m.Test < one.Test-bar {
		text += " **short**"
	}
	return text
}

// tells returns a remark on a row: whether its means differ from those of one machine by more than
// noise. A row in which none does tells nothing of what groups see.
func tells(ways, ones []mean) string {
	for i := range ways {
		if ways[i].Done < ways[i].seeds || ones[i].Done < ones[i].seeds {
			return ""
		}
		if !runs.Noise(&ways[i].Mean, &ones[i].Mean) {
			return ""
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return "noise: tells nothing"
}

// show adds the requested tables to a page.
func (all means) show(p *result.Page) {
	for _, t := range []struct {
		title string
		lines [][]string
	}{
		{"Models", all.models()}, {"What groups see, and what makes up for the rest", all.ways()}, {"Nodes", all.nodes()},
	} {
		p.Table(result.Table{Title: t.title, Head: t.lines[0], Rows: t.lines[1:]})
	}
	var commits []string
	for _, m := range all {
		commits = append(commits, m.Commits...)
	}
	slices.Sort(commits)
	p.Text("Taken at: " + strings.Join(slices.Compact(commits), " "))
}

// chart plots the second table: a panel for each graph, and in it a row for each way,
// with the mean and its deviation. It leaves out SGD, whose low values would take up all
// the room.
func (all means) chart() *plot.Chart {
	c := &plot.Chart{Title: "test accuracy, percent: mean and deviation over seeds", Dots: true}
	for _, w := range ways() {
		if !w.plain && slices.ContainsFunc(all, func(m mean) bool { return m.shape == usual && m.name == w.name }) {
			c.Rows = append(c.Rows, w.name)
		}
	}
	for _, s := range subjects() {
		if len(all.waysOf(s)) == 0 {
			continue
		}
		marks := make([]plot.Mark, len(c.Rows))
		for i, name := range c.Rows {
			m, _ := all.of(s, usual, name)
			marks[i] = plot.Mark{Value: m.Test, Deviation: m.Deviation, Label: fmt.Sprintf("%.1f", m.Test), Missing: m.Done == 0}
		}
		c.Panels = append(c.Panels, plot.Panel{Title: s.title, Marks: [][]plot.Mark{marks}})
	}
	return c
}
