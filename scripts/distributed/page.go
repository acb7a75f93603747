package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// A report is what is kept of a list of cells.
type report struct {
	cells       []cell
	kept        history
	takes       takes
	repetitions int
	picture     string // of how the sides scale; "": none
}

func (r report) page() *result.Page {
	p := &result.Page{Title: "Beside DistDGL and DDP", Command: result.Command("go run ./scripts/distributed")}
	found := r.found(p)
	t := result.Table{Title: "Bars", Head: []string{"Compared", "Cases", "Measured", "Bar", ""}}
	for _, b := range found.bars() {
		t.Add(b.line()...)
	}
	p.Table(t)
	p.Picture(r.picture, "how many times as fast as one node several are, ours and theirs")
	for _, part := range parts {
		p.Table(r.table(part, found))
	}
	p.Text("## Protocol")
	p.Text("It was fixed before anything was measured, but for what the last paragraph says.")
	for _, w := range words() {
		p.Text(w)
	}
	return p
}

// draw draws the picture, if there is to be one.
func (r report) draw() error { return chart(r.found(&result.Page{})).Draw(r.picture) }

// found returns the figures of the cells that were run, and notes on a page what is missing, how busy
// the machine was, and which versions ran.
func (r report) found(p *result.Page) all {
	var found all
	var others []float64
	var versions, missing []string
	for _, c := range r.cells {
		runs := r.kept.of(c, r.takes)
		if len(runs) == 0 {
			continue
		}
		found = append(found, figuresOf(c, runs))
		for _, one := range runs {
			others, versions = append(others, one.Others), append(versions, one.Version)
		}
	}
	for _, part := range append([]string{"loaders"}, parts...) {
		if n, of := r.missing(part); n > 0 {
			missing = append(missing, fmt.Sprintf("%d of %d runs of the part %s", n, of, part))
		}
	}
	if len(missing) > 0 {
		p.Note("INCOMPLETE: missing are " + strings.Join(missing, ", "))
	}
	if len(others) > 0 {
		slices.Sort(versions)
		p.Note(fmt.Sprintf("all else on this machine, the kernel's work on packets included, took %.2f cores in the median run and %.2f in the worst", stats.Median(others), slices.Max(others)))
		p.Note(fmt.Sprintf("measured with %s on %s", strings.Join(slices.Compact(versions), " and "), r.takes.machine))
	}
	return found
}

// missing counts the runs of a part that are not there, and all.
func (r report) missing(part string) (n, of int) {
	for _, c := range r.cells {
		if c.part != part {
			continue
		}
		for i := range r.repetitions {
			of++
			if !r.kept.done(c, i+1, r.takes) {
				n++
			}
		}
	}
	return n, of
}

// table has the cells of a part, beside DistDGL's and DDP's times in the same setup.
func (r report) table(part string, found all) result.Table {
	t := result.Table{
		Title: strings.ToUpper(part[:1]) + part[1:],
		Head:  []string{"Graph, nodes, link", "Model", "By", "Runs", "First epoch", "Second", "Later epochs", "All epochs", "Over DistDGL", "Over DDP", "Sent", "Processor", "Memory", "Accuracy"},
	}
	for _, c := range r.cells {
		if c.part != part {
			continue
		}
		where := fmt.Sprintf("%s, %d, %s", c.data.name, c.nodes, c.bound())
		if c.epochs != epochs {
			where += fmt.Sprintf(", %d epochs", c.epochs)
		}
		f, ok := found.of(c, c.side.name)
		if !ok {
			if why := r.kept.failed(c, r.takes); why != "" {
				t.Add(where, c.model, c.side.name, 0, "failed: "+why, "", "", "", "", "", "", "", "", "")
			}
			continue
		}
		name := c.side.name
		if c.side.other {
			name += " (another algorithm)"
		}
		if f.chosen != "" {
			name += " (chose " + f.chosen + ")"
		}
		dist, hasDist := found.dist(c, later)
		ddp, hasDDP := found.ddp(c, later)
		t.Add(where, c.model, name, f.runs, fmt.Sprintf("%.2f s", f.first), fmt.Sprintf("%.2f s", f.second), fmt.Sprintf("%.2f s", f.later), fmt.Sprintf("%.2f s", f.whole), over(f.later, dist, hasDist), over(f.later, ddp, hasDDP),
			fmt.Sprintf("%.1f MB", f.bytes/1e6), fmt.Sprintf("%.2f s", f.processor), fmt.Sprintf("%.2f GB", f.memory/1e9), fmt.Sprintf("%.3f", f.accuracy))
	}
	return t
}

// chart draws how many times as fast as one node of the same side several are. leap is compared with
// single, by which we train on one.
func chart(found all) *plot.Chart {
	c := &plot.Chart{Title: "How many times as fast as one node, 400 Mbit/s", Series: []string{byMETIS, byDDP, byLeap}}
	marks := make([][]plot.Mark, len(c.Series))
	for _, m := range ends {
		for _, n := range []int{2, 4, 8} {
			at := usual
			at.nodes = n
			if n == 8 {
				at.cores /= 2
			}
			one := at
			one.nodes, one.cores = 1, cores
			label := fmt.Sprintf("%s, %d nodes", m, n)
			if at.cores != cores {
				label += " of half its share"
			}
			c.Rows = append(c.Rows, label)
			for i, name := range c.Series {
				mark := plot.Mark{Missing: true}
				base := name
				if name == byLeap {
					base = "single"
				}
				several, ok := found.of(cell{setup: at, model: m}, name)
				alone, had := found.of(cell{setup: one, model: m}, base)
				if ok && had {
					x := alone.later / several.later
					mark = plot.Mark{Value: x, Label: fmt.Sprintf("%.2f", x)}
				}
				marks[i] = append(marks[i], mark)
			}
		}
	}
	c.Panels = []plot.Panel{{Marks: marks}}
	return c
}

func over(a, b float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2fx", a/b)
}
