package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/hopmesh/hopmesh/node/bench/result"
)

// table holds the results of the steps.
type table struct {
	Steps []outcome `json:"steps"`
	Bars  []verdict `json:"bars"`
}

// verdict is a bar with the measured value.
type verdict struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Bar   string  `json:"bar"`
	Holds bool    `json:"holds"`
}

func (t *table) add(r outcome) {
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

// judge compares figures with the bars for which all figures are present.
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

// sound reports whether no step has failed. Slow figures do not count as failures.
func (t *table) sound() bool {
	return !slices.ContainsFunc(t.Steps, func(r outcome) bool { return r.Ended == failed || r.Ended == late })
}

// page returns the table as a document.
func (t *table) page() *result.Page {
	p := &result.Page{Title: "On a GPU", Command: result.Command("gpu")}
	if name := gpu(); name != "" {
		p.Note("the GPU is " + name)
	}
	steps := result.Table{Head: []string{"Step", "", "Seconds", ""}}
	for _, s := range t.Steps {
		steps.Add(s.Step, s.Ended, fmt.Sprintf("%.1f", s.Seconds), s.Said)
	}
	p.Table(steps)
	figures := result.Table{Head: []string{"Figure", "", ""}}
	for _, n := range t.figures() {
		figures.Add(n.Name, fmt.Sprintf("%.4g", n.Value), n.Unit)
	}
	p.Table(figures)
	verdicts := result.Table{Head: []string{"Bar", "", "", ""}}
	for _, v := range t.Bars {
		holds := "holds"
		if !v.Holds {
			holds = "FALLS SHORT"
		}
		verdicts.Add(v.What, fmt.Sprintf("%.3g", v.Value), v.Bar, holds)
	}
	p.Table(verdicts)
	return p
}

// write writes the table into the folder, for people, for documents and for programs.
func (t *table) write(folder string) error {
	text, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	p := t.page()
	return errors.Join(
		p.Print(&plain),
		os.WriteFile(filepath.Join(folder, "table.json"), append(text, '\n'), 0o600),
		os.WriteFile(filepath.Join(folder, "table.txt"), plain.Bytes(), 0o600),
		p.Write(filepath.Join(folder, "table.md")),
	)
}
