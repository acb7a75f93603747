package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hopmesh/hopmesh/scripts/runs"
)

// bar is how far from graph's a mean may be, in points.
const bar = 1.0

// table prints a line for each row and how far it is from what graph comes to.
func (t task) table(list []row, k *runs.Kept, to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TABLE\tGRAPH\tMODEL\tBY\tSEEDS\tTEST ACCURACY\tBESIDE GRAPH\t\tCOMMIT")
	exactly := map[string]float64{} // of a subject
	for _, r := range list {
		id, err := runs.Digest(r.whole())
		if err != nil {
			return err
		}
		var tests []float64
		var commits []string
		done := k.Of(r.id(), id, 0)
		for seed := range uint64(t.seeds) {
			if one, ok := done[seed]; ok {
				tests, commits = append(tests, one.Test), append(commits, one.Commit)
			}
		}
		slices.Sort(commits)
		commits = slices.Compact(commits)
		said, apart, verdict, of := "not run", "", "", r.table+r.subject.id()
		if len(tests) > 0 {
			mean, deviation := runs.Spread(tests)
			said = fmt.Sprintf("%.2f ± %.2f", mean, deviation)
			if r.name == exact.name {
				exactly[of] = mean
			} else if one, ok := exactly[of]; ok {
				apart = fmt.Sprintf("%+.2f", mean-one)
				verdict = judged(r, mean-one, len(tests) == t.seeds)
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", r.table, r.title, r.model, r.name, len(tests), t.seeds, said, apart, verdict, strings.Join(commits, " "))
	}
	return w.Flush()
}

// judged says whether a mean is within the bar, where there is one.
func judged(r row, apart float64, whole bool) string {
	switch {
	case r.table != beside:
		return ""
	case !whole:
		return "not all seeds"
	case apart < -bar:
		return "BELOW"
	}
	return "holds"
}
