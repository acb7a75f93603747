package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/runs"
)

// table adds the means of all rows with their bars to a page. It returns an error if a
// mean is too far below its bar.
func table(list []row, k *runs.Kept, p *result.Page) error {
	t := result.Table{Head: []string{"Graph", "Model", "Recipe", "Seeds", "Test accuracy", "Bar", "", "Commit"}}
	var below error
	for _, r := range list {
		m, err := k.Of(r.on(0))
		if err != nil {
			return err
		}
		mean, bar, verdict := "not run", "", ""
		if m.Done > 0 {
			mean = fmt.Sprintf("%.2f ± %.2f", m.Test, m.Deviation)
		}
		if r.bar > 0 {
			bar = fmt.Sprintf("%.1f", r.bar)
			switch {
			case m.Done < r.seeds:
				verdict = "not all seeds"
			case m.Test >= r.bar:
				verdict = "holds"
			case m.Test >= r.bar-tolerance:
				verdict = "within tolerance"
			default:
				verdict, below = "BELOW", errBelow
			}
		}
		t.Add(r.graph, r.name, describe(r.Recipe), fmt.Sprintf("%d of %d", m.Done, r.seeds), mean, bar, verdict, strings.Join(m.Commits, " "))
	}
	p.Table(t)
	return below
}

// apart is how much a mean on several nodes may differ from that on one, in points.
const apart = 0.3

var errApart = errors.New("a mean on several nodes is more than 0.3 points from that on one")

// compare adds the means of the seeds that were trained on one node and on several. It
// returns an error if two are too far apart.
func (t options) compare(list []row, k *runs.Kept, p *result.Page) error {
	table := result.Table{Head: []string{"Graph", "Model", "Seeds", "One node", fmt.Sprintf("%d nodes", t.nodes), "Apart", ""}}
	var far error
	for _, r := range list {
		alone, err := k.Of(r.on(0))
		if err != nil {
			return err
		}
		shared, err := k.Of(r.on(t.nodes))
		if err != nil {
			return err
		}
		var one, many []float64
		for _, a := range alone.Runs {
			for _, b := range shared.Runs {
				if a.Seed == b.Seed {
					one, many = append(one, a.Test), append(many, b.Test)
				}
			}
		}
		if len(one) == 0 {
			continue
		}
		mean, deviation := stats.Spread(one)
		meanToo, deviationToo := stats.Spread(many)
		verdict := "holds"
		if math.Abs(mean-meanToo) > apart {
			verdict, far = "APART", errApart
		}
		table.Add(r.graph, r.name, fmt.Sprintf("%d of %d", len(one), r.seeds), fmt.Sprintf("%.2f ± %.2f", mean, deviation), fmt.Sprintf("%.2f ± %.2f", meanToo, deviationToo),
			fmt.Sprintf("%+.2f", meanToo-mean), verdict)
	}
	p.Table(table)
	return far
}
