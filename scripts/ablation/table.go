package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hopmesh/hopmesh/scripts/runs"
)

// A mean is what the seeds of a row came to.
type mean struct {
	row
	done            int     // seeds
	test, deviation float64 // percent
	seen            float64 // of edges, in the end: 0 where nobody counts
	commits         []string
}

// found are the means of rows, as far as there are any.
func (t task) found(list []row, k *runs.Kept) (all []mean, err error) {
	for _, r := range list {
		id, err := runs.Digest(r.whole())
		if err != nil {
			return nil, err
		}
		m := mean{row: r}
		var tests []float64
		done := k.Of(r.id(), id, r.nodes)
		for seed := range uint64(r.seeds) {
			if one, ok := done[seed]; ok {
				tests = append(tests, one.Test)
				m.commits = append(m.commits, one.Commit)
				m.seen = one.Seen
			}
		}
		slices.Sort(m.commits)
		m.commits, m.done = slices.Compact(m.commits), len(tests)
		m.test, m.deviation = runs.Spread(tests)
		all = append(all, m)
	}
	return all, nil
}

// table prints a line for each row, and how far it is from what one machine comes to on
// its graph, by the same optimizer.
func table(all []mean, to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "GRAPH\tWHAT\tSEEDS\tTEST ACCURACY\tBESIDE ONE MACHINE\tEDGES SEEN\tCOMMIT")
	type yardstick struct {
		graph string
		plain bool
	}
	exact := map[yardstick]float64{}
	for _, m := range all {
		said, beside, seen := "not run", "", ""
		if m.done > 0 {
			said = fmt.Sprintf("%.2f ± %.2f", m.test, m.deviation)
			if m.seen > 0 {
				seen = fmt.Sprintf("%.1f %%", 100*m.seen)
			}
			if one, ok := exact[yardstick{m.graph, m.plain}]; ok {
				beside = fmt.Sprintf("%+.2f", m.test-one)
			} else if m.name == alone {
				exact[yardstick{m.graph, m.plain}] = m.test
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", m.title+" "+m.model+fmt.Sprint(m.layers), m.name, m.done, m.seeds, said, beside, seen, strings.Join(m.commits, " "))
	}
	return w.Flush()
}
