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
	runs.Mean
}

// means are those of all rows that were asked for, in order.
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

// of is the mean of a way, if it was asked for.
func (all means) of(s subject, m shape, way string) (mean, bool) {
	at := slices.IndexFunc(all, func(o mean) bool { return o.graph == s.graph && o.shape == m && o.name == way })
	if at < 0 {
		return mean{}, false
	}
	return all[at], true
}

// said is a mean with its deviation, and how many seeds it is of where that is not all.
func (m *mean) said() string {
	if m.Done == 0 {
		return "*not run yet*"
	}
	text := fmt.Sprintf("%.2f ± %.2f", m.Test, m.Deviation)
	if m.Done < m.seeds {
		text += fmt.Sprintf(", *%d of %d*", m.Done, m.seeds)
	}
	return text
}

// bar is how far below one machine groups with a halo that are swept may be, in points.
const bar = 1.0

// beside is what is said of a mean, with how far it is from that of one machine in points.
func (m *mean) beside(one *mean) string {
	text := m.said()
	if m.Done == 0 || one.Done == 0 {
		return text
	}
	text += fmt.Sprintf(" (%+.2f)", m.Test-one.Test)
	if (m.name == full || m.name == pair) && m.Test < one.Test-bar {
		text += " **short**"
	}
	return text
}

// print prints the tables of what was asked for.
func (all means) print(to io.Writer) error {
	for i, lines := range [][][]string{all.models(), all.ways(), all.nodes()} {
		if len(lines) < 2 {
			continue
		}
		title := []string{"Models", "What groups see, and what makes up for the rest", "Nodes"}[i]
		if _, err := fmt.Fprintf(to, "%s:\n\n", title); err != nil {
			return err
		}
		w := tabwriter.NewWriter(to, 0, 0, 0, ' ', 0)
		for j, line := range lines {
			_, _ = fmt.Fprintf(w, "| %s\t |\n", strings.Join(line, "\t | "))
			if j == 0 {
				_, _ = fmt.Fprintf(w, "|%s\n", strings.Repeat("---|", len(line)))
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(to); err != nil {
			return err
		}
	}
	var commits []string
	for _, m := range all {
		commits = append(commits, m.Commits...)
	}
	slices.Sort(commits)
	_, err := fmt.Fprintf(to, "Taken at: %s\n", strings.Join(slices.Compact(commits), " "))
	return err
}
