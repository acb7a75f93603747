package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// A table is what came of the steps.
type table struct {
	Steps []result  `json:"steps"`
	Bars  []verdict `json:"bars"`
}

// A verdict is a bar with what was measured.
type verdict struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Bar   string  `json:"bar"`
	Holds bool    `json:"holds"`
}

func (t *table) add(r result) {
	t.Steps = append(t.Steps, r)
	t.Bars = judge(t.figures())
}

func (t *table) figures() []number {
	var all []number
	for _, s := range t.Steps {
		all = append(all, s.Figures...)
	}
	return all
}

// judge is the bars of which all figures are there.
func judge(figures []number) []verdict {
	value := func(name string) (float64, bool) {
		i := slices.IndexFunc(figures, func(n number) bool { return n.Name == name })
		if i < 0 {
			return 0, false
		}
		return figures[i].Value, true
	}
	var all []verdict
	for _, b := range bars {
		v, there := value(b.figure)
		if b.over != "" {
			over, also := value(b.over)
			there = there && also && over > 0
			v /= over
		}
		if !there {
			continue
		}
		said, holds := fmt.Sprintf("at least %g", b.least), v >= b.least
		if b.most > 0 {
			said, holds = fmt.Sprintf("at most %g", b.most), v <= b.most
		}
		all = append(all, verdict{b.what, v, said, holds})
	}
	return all
}

// sound says whether nothing has failed. What is slow is no failure.
func (t *table) sound() bool {
	return !slices.ContainsFunc(t.Steps, func(r result) bool { return r.Ended == failed || r.Ended == late })
}

func (t *table) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "step\t\tseconds\t")
	for _, s := range t.Steps {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%s\n", s.Step, s.Ended, s.Seconds, s.Said)
	}
	if all := t.figures(); len(all) > 0 {
		fmt.Fprintln(w, "\t\t\t\nfigure\t\t\t")
		for _, n := range all {
			fmt.Fprintf(w, "%s\t%.4g\t%s\t\n", n.Name, n.Value, n.Unit)
		}
	}
	if len(t.Bars) > 0 {
		fmt.Fprintln(w, "\t\t\t\nbar\t\t\t")
		for _, v := range t.Bars {
			holds := "holds"
			if !v.Holds {
				holds = "FALLS SHORT"
			}
			fmt.Fprintf(w, "%s\t%.3g\t%s\t%s\n", v.What, v.Value, v.Bar, holds)
		}
	}
	w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// write puts the table into the folder, for people and for programs.
func (t *table) write(folder string) error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "table.json"), append(text, '\n'), 0o600),
		os.WriteFile(filepath.Join(folder, "table.txt"), []byte(t.text()), 0o600),
	)
}
