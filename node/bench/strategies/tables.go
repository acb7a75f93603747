package strategies

import (
	"fmt"

	"github.com/hopmesh/hopmesh/node/bench/result"
)

// Show adds the figures and the tables of what they are made of.
func (r *Report) Show(p *result.Page) {
	r.Report.Show(p)
	p.Table(r.sentTable())
	p.Table(r.ladderTable())
	p.Picture(r.ladderPicture, "leap's ladder")
	p.Table(r.columnsTable())
	p.Table(r.timesTable())
	p.Table(r.isolatedTable())
	p.Table(r.sweptTable())
	known := map[string]bool{}
	for _, t := range r.Times {
		if t.Refused != "" && !known[t.Refused] {
			known[t.Refused] = true
			p.Text(fmt.Sprintf("%s with %s is refused: %s.", t.Model, t.Strategy, t.Refused))
		}
	}
	p.Table(r.volumesTable())
	p.Table(r.movedTable())
	p.Table(r.pipedTable())
	p.Picture(r.pipePicture, "times of pipe beside those of graph")
	if len(r.Piped) == 0 {
		return
	}
	for _, g := range deepGraphs {
		p.Text(fmt.Sprintf("%s is generated, with %d of its %d vertices (%.3g of it), %d of its %d features, hidden rows of %d for %d, %d classes for %d.",
			g.name, g.grown*g.like.vertices, g.vertices, g.scale(), g.width, g.features, deepHidden, g.hidden, g.like.classes, g.classes))
	}
}

// Numbers as tables have them.
func mb(bytes float64) string        { return fmt.Sprintf("%.2f MB", bytes/1e6) }
func megabytes(n uint64) string      { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
func gib(bytes uint64) string        { return fmt.Sprintf("%.3f GiB", inGiB(bytes)) }
func inGiB(bytes uint64) float64     { return float64(bytes) / (1 << 30) }
func seconds(s float64) string       { return fmt.Sprintf("%.2f s", s) }
func percent(share float64) string   { return fmt.Sprintf("%.0f %%", 100*share) }
func ratioText(ratio float64) string { return fmt.Sprintf("%.2fx", ratio) }

func (r *Report) sentTable() result.Table {
	t := result.Table{Head: []string{"An epoch sends", "Width", "Fan-out", "Batch", "Strategy", "Steps", "Requests", "Rows", "Local", "Features", "Gradients"}}
	for _, s := range r.Sent {
		local := float64(s.Rows.Local) / float64(s.Rows.Local+s.Rows.Remote)
		t.Add(s.Graph, s.Width, load{fanouts: s.Fanout}.hops(), s.Batch, s.Strategy, s.Steps, s.Requests.Feature, s.Rows.Remote, percent(local),
			megabytes(s.Bytes.Feature), megabytes(s.Bytes.Gradient))
	}
	return t
}

func (r *Report) ladderTable() result.Table {
	t := result.Table{Head: []string{"The ladder, a step", "Slots", "Requests", "Rows", "Local", "Features", "Models", "Epoch"}}
	for _, g := range r.Ladder {
		t.Add(g.Name, g.Slots, fmt.Sprintf("%.1f", g.Requests), fmt.Sprintf("%.0f", g.Remote), percent(g.LocalShare), mb(g.Feature), mb(g.Model), seconds(g.Seconds))
	}
	return t
}

func (r *Report) columnsTable() result.Table {
	t := result.Table{Head: []string{"The ladder of p3, a step", "Features", "Edges", "Activations", "Models", "Gradients", "Updates behind", "Epoch"}}
	for _, g := range r.Columns {
		t.Add(g.Name, mb(g.Feature), mb(g.Topology), mb(g.Activation), mb(g.Model), mb(g.Gradient), g.Behind, seconds(g.Seconds))
	}
	return t
}

func (r *Report) timesTable() result.Table {
	t := result.Table{Head: []string{"An epoch takes", "Width", "Hidden", "Strategy", "Seconds", "Fetching"}}
	for _, e := range r.Times {
		took, fetching := seconds(e.Seconds), ""
		if e.Refused != "" {
			took = "refused"
		}
		if e.Strategy == "centric" {
			fetching = percent(e.Fetching)
		}
		t.Add(e.Model, e.Width, e.Hidden, e.Way, took, fetching)
	}
	return t
}

func (r *Report) isolatedTable() result.Table {
	t := result.Table{Head: []string{
		"Grappa, an epoch", "Layers", "Width", "Hidden", "Fan-out", "Centric", "Grappa", "Faster", "Fetching", "Ceiling", "A step sends", "Formula", "Edges seen",
	}}
	for i := range r.Isolated {
		c := &r.Isolated[i]
		t.Add(c.Model, c.Layers, c.Width, c.Hidden, load{fanouts: c.Fanout}.hops(), seconds(c.Centric), seconds(c.Grappa), ratioText(c.faster()), percent(c.Fetching),
			ratioText(c.Ceiling), fmt.Sprintf("%.0f B", c.Gradient), fmt.Sprintf("%d B", c.Formula), percent(c.Seen))
	}
	return t
}

func (r *Report) sweptTable() result.Table {
	t := result.Table{Head: []string{"Grappa sweeps", "Model", "Epochs", "Sweeping", "Without", "Adds", "Rows", "An epoch", "Waits at the switch", "The switch brings"}}
	for i := range r.Swept {
		s := &r.Swept[i]
		t.Add(s.Dataset, s.Load, s.Epochs, fmt.Sprintf("%.1f s", s.Swept), fmt.Sprintf("%.1f s", s.Still), fmt.Sprintf("%.1f %%", 100*s.adds()), ratioText(s.Rows),
			seconds(s.Steady), seconds(s.Wait), megabytes(s.Bytes))
	}
	return t
}

func (r *Report) volumesTable() result.Table {
	t := result.Table{Head: []string{
		fmt.Sprintf("By formula, %d nodes", publishedNodes), "Model", "Alpha", "Graph: rows", "Sums", "Pipe: rows", "Rows over rows", "As authors count", "Our models",
	}}
	for _, v := range r.Volumes {
		t.Add(v.Graph, v.Model, fmt.Sprintf("%.2f", v.Alpha), gib(v.Halo), gib(v.Sums), gib(v.Pipe), ratioText(v.Rows), ratioText(v.Counted), ratioText(v.Ours))
	}
	return t
}

func (r *Report) movedTable() result.Table {
	t := result.Table{Head: []string{
		"Counted, an epoch", "Model", "Nodes", "Strategy", "Alpha", "Rows", "By formula", "Gradients", "By formula", "Over graph", "L alpha / ((S-1) n_b)",
	}}
	for _, m := range r.Moved {
		over, by := "", ""
		if m.Ratio > 0 {
			over = ratioText(m.Ratio) + " less"
		}
		if m.RatioBy > 0 {
			by = ratioText(m.RatioBy)
		}
		t.Add(m.Graph, m.Model, m.Nodes, m.Strategy, fmt.Sprintf("%.2f", m.Alpha), m.Rows, m.RowsBy, m.Sums, m.SumsBy, over, by)
	}
	return t
}

func (r *Report) pipedTable() result.Table {
	t := result.Table{Head: []string{
		"Timed, an epoch", "Model", "Nodes", "Strategy", "Alpha", "Rate", "Seconds", "Waiting", "Bubble", "Rows", "Gradients", "Over graph", "Published",
	}}
	for _, p := range r.Piped {
		over, authors, name := "", "", p.Strategy
		if p.Chosen {
			name += ", chosen"
		}
		if p.Ratio > 0 {
			over = ratioText(p.Ratio) + " faster"
			if p.Ratio < 1 {
				over = ratioText(p.Ratio) + ", SLOWER"
			}
		}
		if p.Authors > 0 {
			authors = ratioText(p.Authors)
		}
		t.Add(p.Graph, p.Model, p.Nodes, name, fmt.Sprintf("%.2f", p.Alpha), rateOf(p.Rate), seconds(p.Seconds), percent(p.Waiting), percent(p.Bubble),
			megabytes(p.Rows), megabytes(p.Sums), over, authors)
	}
	return t
}
