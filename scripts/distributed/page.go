package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// A report is what is kept of a list of cells.
type report struct {
	cells       []cell
	kept        history
	takes       takes
	repetitions int
}

func (r report) page() *result.Page {
	p := &result.Page{Title: "Beside DistDGL and DDP", Command: result.Command("go run ./scripts/distributed")}
	found := r.found(p)
	t := result.Table{Title: "Bars", Head: []string{"Compared", "Cases", "Measured", "Bar", ""}}
	for _, b := range found.bars() {
		t.Add(b.line()...)
	}
	p.Table(t)
	for _, part := range parts {
		p.Table(r.table(part, found))
	}
	p.Text("## Protocol")
	p.Text("It was fixed before anything was measured.")
	for _, w := range words() {
		p.Text(w)
	}
	return p
}

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
		Head:  []string{"Graph, nodes, link", "Model", "By", "Runs", "First epoch", "Later epochs", "All epochs", "Over DistDGL", "Over DDP", "Sent", "Processor", "Memory", "Accuracy"},
	}
	for _, c := range r.cells {
		if c.part != part {
			continue
		}
		where := fmt.Sprintf("%s, %d, %s", c.data.name, c.nodes, c.bound())
		f, ok := found.of(c, c.side.name)
		if !ok {
			if why := r.kept.failed(c, r.takes); why != "" {
				t.Add(where, c.model, c.side.name, 0, "failed: "+why, "", "", "", "", "", "", "", "")
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
		t.Add(where, c.model, name, f.runs, fmt.Sprintf("%.2f s", f.first), fmt.Sprintf("%.2f s", f.later), fmt.Sprintf("%.2f s", f.whole), over(f.later, dist, hasDist), over(f.later, ddp, hasDDP),
			fmt.Sprintf("%.1f MB", f.bytes/1e6), fmt.Sprintf("%.2f s", f.processor), fmt.Sprintf("%.2f GB", f.memory/1e9), fmt.Sprintf("%.3f", f.accuracy))
	}
	return t
}

func over(a, b float64, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2fx", a/b)
}
