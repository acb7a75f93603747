package main

import (
	"fmt"
	"strings"

	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// A paper is one whose claims are looked at.
type paper struct {
	name, title string
	parts       []string // of hopmesh bench strategies; one of a single graph is PART/GRAPH
	means       []string // programs that keep accuracies
	setting     string   // where the authors measured, and where we do
	claims      []claim
	why         string // what explains the differences
}

// A claim is one headline of a paper.
type claim struct {
	what      string
	published string
	ours      func(*measured) found
	formula   string // ours, or theirs, by formula at the paper's size; "": there is no formula
	judge     judge
	drawn     float64 // the published figure, as the plot has it; 0: it is not drawn
}

// found is our figure for a claim.
type found struct {
	value float64
	text  string // the figure in words; "": not measured
}

// A verdict says what came of a claim.
type verdict string

const (
	reproduced verdict = "reproduced"
	partly     verdict = "partly"
	not        verdict = "not"
	unknown    verdict = "not measured"
)

// A judge compares our figure with a claim. Judges were written before anything was measured.
type judge func(ours float64) verdict

// slack is the share of a published figure that ours may fall short by, and still reproduces it:
// machines, graphs and links differ.
const slack = 0.1

// atLeast judges how many times faster or smaller something is: it reproduces a claim that comes to
// nearly as much, and in part one of the same direction.
func atLeast(published float64) judge {
	return func(ours float64) verdict {
		switch {
		case ours >= (1-slack)*published:
			return reproduced
		case ours > 1:
			return partly
		}
		return not
	}
}

// within judges a figure that is to lie in a range, and in part one that lies up to a quarter beside.
func within(low, high float64) judge {
	return func(ours float64) verdict {
		const beside = 1.25
		switch {
		case ours >= low && ours <= high:
			return reproduced
		case ours >= low/beside && ours <= high*beside:
			return partly
		}
		return not
	}
}

// atMost judges a distance in points: one that is within a point at least holds in part.
func atMost(published float64) judge {
	return func(ours float64) verdict {
		switch {
		case ours <= published:
			return reproduced
		case ours <= 1:
			return partly
		}
		return not
	}
}

// verdict returns our figure and what it means for the claim.
func (c *claim) verdict(m *measured) (found, verdict) {
	f := c.ours(m)
	if f.text == "" {
		return f, unknown
	}
	return f, c.judge(f.value)
}

// whole sums up a paper's verdicts in one word.
func whole(all []verdict) verdict {
	counts := map[verdict]int{}
	for _, v := range all {
		counts[v]++
	}
	switch n := len(all); {
	case counts[unknown] > 0:
		return unknown
	case counts[reproduced] == n:
		return reproduced
	case counts[not] == n:
		return not
	}
	return partly
}

// page makes the page of a paper, and draws its plot into a file; "": nowhere.
func (p paper) page(m *measured, picture string) (*result.Page, error) {
	page := &result.Page{Title: p.title, Command: p.command()}
	if len(m.missing) > 0 {
		page.Note("INCOMPLETE: not measured yet are " + strings.Join(m.missing, ", "))
	}
	for _, by := range m.by {
		page.Note(by)
	}
	page.Text(p.setting)
	table := result.Table{Title: "Claims", Head: []string{"Claim", "Published", "Ours", "By formula at their size", ""}}
	chart := &plot.Chart{Title: "published and measured", Series: []string{"published", "measured"}}
	panel := plot.Panel{Marks: make([][]plot.Mark, 2)}
	var all []verdict
	for i := range p.claims {
		c := &p.claims[i]
		f, v := c.verdict(m)
		all = append(all, v)
		text := f.text
		if text == "" {
			text = "*not measured yet*"
		}
		table.Add(c.what, c.published, text, c.formula, string(v))
		if c.drawn > 0 {
			chart.Rows = append(chart.Rows, c.what)
			panel.Marks[0] = append(panel.Marks[0], plot.Mark{Value: c.drawn, Label: fmt.Sprintf("%.3g", c.drawn)})
			panel.Marks[1] = append(panel.Marks[1], plot.Mark{Value: f.value, Label: fmt.Sprintf("%.3g", f.value), Missing: f.text == ""})
		}
	}
	page.Table(table)
	page.Picture(picture, "published figures beside ours")
	soFar := ""
	if len(m.missing) > 0 {
		soFar = ", so far"
	}
	page.Text(fmt.Sprintf("**Altogether%s: %s.** %s", soFar, whole(all), p.why))
	m.Show(page)
	chart.Panels = []plot.Panel{panel}
	return page, chart.Draw(picture)
}
