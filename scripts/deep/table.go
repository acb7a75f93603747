package main

import (
	"fmt"
	"io"
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
		run := r.run(t.seeds)
		m, err := k.Of(run)
		if err != nil {
			return err
		}
		said, apart, verdict, of := "not run", "", "", r.table+r.subject.id()
		if m.Done > 0 {
			said = fmt.Sprintf("%.2f ± %.2f", m.Test, m.Deviation)
			if r.name == exact.name {
				exactly[of] = m.Test
			} else if one, ok := exactly[of]; ok {
				apart = fmt.Sprintf("%+.2f", m.Test-one)
				verdict = judged(r, m.Test-one, m.Done == run.Seeds)
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", r.table, r.title, r.model, r.name, m.Done, run.Seeds, said, apart, verdict, strings.Join(m.Commits, " "))
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
