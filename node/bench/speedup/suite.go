package speedup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/plot"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/node/shape"
)

// A Cell is one model on so many nodes.
type Cell struct {
	Network string  `json:"network"`
	Nodes   int     `json:"nodes"`
	Model   string  `json:"model"`
	Way     string  `json:"way,omitempty"`
	First   float64 `json:"first"`   // seconds of the first epoch
	Later   float64 `json:"seconds"` // of one of the next, the median
	Sent    uint64  `json:"bytes"`   // in the last epoch, by all nodes
	Began   uint64  `json:"first_bytes"`
	Speedup float64 `json:"speedup"` // over one node
	Ceiling float64 `json:"ceiling"` // the most that it could be; 0: not measured

	job    job
	rounds []reading
}

// A job is what a cell trains.
type job struct {
	network network
	way     way
	model   model
	nodes   int
}

// A reading is one round of a cell.
type reading struct {
	first, later float64
	used         time.Duration // of processors; 0: not measured
}

// name returns the words for the cell's job.
func (c *Cell) name() string {
	if c.Way == "" {
		return c.Model
	}
	return c.Model + ", " + c.Way
}

// base reports whether a cell is what another one is compared with: one node that trains the same,
// in the same way if one node can.
func (c *Cell) base(of *Cell) bool {
	return c.Nodes == 1 && c.Network == of.Network && c.Model == of.Model && (c.Way == of.Way || c.Way == "" && !of.job.way.alone)
}

// Report is what --json prints.
type Report struct {
	bench.Report
	Cells []Cell `json:"cells"`

	picture string // a file, or ""
}

// Show adds the cells to the figures.
func (r *Report) Show(p *result.Page) {
	r.Report.Show(p)
	p.Picture(r.picture, "how much faster two and four nodes are than one")
	t := result.Table{Title: "Epochs", Head: []string{"Link", "Nodes", "Layers x hidden", "First epoch", "Sent", "Later epochs", "Sent", "Over one node", "Ceiling"}}
	for i := range r.Cells {
		c, ceiling := &r.Cells[i], ""
		if c.Ceiling > 0 {
			ceiling = fmt.Sprintf("%.2fx", c.Ceiling)
		}
		t.Add(c.Network, c.Nodes, c.name(), fmt.Sprintf("%.2f s", c.First), fmt.Sprintf("%.1f MB", float64(c.Began)/1e6),
			fmt.Sprintf("%.3f s", c.Later), fmt.Sprintf("%.1f MB", float64(c.Sent)/1e6), fmt.Sprintf("%.2fx", c.Speedup), ceiling)
	}
	p.Table(t)
}

// chart draws the speedups of two and four nodes with the usual settings, and the ceiling of four.
func chart(cells []Cell) *plot.Chart {
	c := &plot.Chart{Title: "Epochs over those of one node", Series: []string{"two nodes", "four nodes", "four at most"}}
	marks := make([][]plot.Mark, len(c.Series))
	add := func(series int, value float64) {
		marks[series] = append(marks[series], plot.Mark{Value: value, Label: fmt.Sprintf("%.2f", value)})
	}
	for i := range cells {
		of := &cells[i]
		if of.Way != "" || of.Network == networks[2].name {
			continue
		}
		switch of.Nodes {
		case 1:
			c.Rows = append(c.Rows, of.Network+", "+of.Model)
		case 2:
			add(0, of.Speedup)
		case 4:
			add(1, of.Speedup)
			add(2, of.Ceiling)
		}
	}
	c.Panels = []plot.Panel{{Marks: marks}}
	return c
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	report := &Report{}
	suite := bench.Suite{Title: "Speedup", Parts: []bench.Part{{What: "how much faster several nodes are than one", Measure: func(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
		if err := measure(ctx, run, cfg.Scale.Quick, report); err != nil {
			return nil, err
		}
		if cfg.Out != "" {
			report.picture = strings.TrimSuffix(cfg.Out, filepath.Ext(cfg.Out)) + ".svg"
		}
		if err := chart(report.Cells).Draw(report.picture); err != nil {
			return nil, err
		}
		return figures(report.Cells), nil
	}}}}
	return bench.Measure(ctx, cfg, suite, report, stdout, stderr)
}

// cells returns those of the protocol, network by network and there by the number of nodes.
func cells() (all []Cell) {
	for _, w := range networks {
		for _, n := range w.sizes() {
			for _, by := range w.ways {
				if !slices.Contains(by.sizes, n) {
					continue
				}
				for _, m := range w.models {
					all = append(all, Cell{Network: w.name, Nodes: n, Model: m.String(), Way: by.name, job: job{w, by, m, n}})
				}
			}
		}
	}
	return all
}

// sizes returns how many nodes there are on a network, one number after the other.
func (n network) sizes() (all []int) {
	for _, by := range n.ways {
		all = append(all, by.sizes...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// measure measures all cells, round by round.
func measure(ctx context.Context, run *bench.Run, quick bool, report *Report) error {
	report.Cells = cells()
	for round := range rounds {
		for left := report.Cells; len(left) > 0; {
			of := left[0].job
			n := slices.IndexFunc(left, func(c Cell) bool { return c.Network != of.network.name || c.Nodes != of.nodes })
			if n < 0 {
				n = len(left)
			}
			run.Progress("  round %d of %d: %s, nodes: %d", round+1, rounds, of.network.name, of.nodes)
			if err := onNodes(ctx, run, of.network, of.nodes, quick, left[:n], report); err != nil {
				return fmt.Errorf("%d nodes, %s: %w", of.nodes, of.network.name, err)
			}
			left = left[n:]
		}
	}
	compare(report.Cells)
	return nil
}

// compare sets what all rounds say together. A speedup is the median of those of the rounds, each
// of which has its own time of one node. A ceiling is that of the network on which processor time
// was measured: a network has no part in it.
func compare(cells []Cell) {
	used := map[string]time.Duration{}
	key := func(nodes int, c *Cell) string { return fmt.Sprint(nodes, c.name()) }
	for i := range cells {
		for _, r := range cells[i].rounds {
			used[key(cells[i].Nodes, &cells[i])] += r.used
		}
	}
	for i := range cells {
		c := &cells[i]
		one := slices.IndexFunc(cells, func(o Cell) bool { return o.base(c) })
		var first, later, faster []float64
		for round, r := range c.rounds {
			first, later = append(first, r.first), append(later, r.later)
			faster = append(faster, cells[one].rounds[round].later/r.later)
		}
		c.First, c.Later, c.Speedup = stats.Median(first), stats.Median(later), stats.Median(faster)
		if all, alone := used[key(c.Nodes, c)], used[key(1, c)]; all > 0 && alone > 0 && c.job.way.ceiling {
			c.Ceiling = float64(c.Nodes) * float64(alone) / float64(all)
		}
	}
}

// onNodes measures a round of the cells of one network and number of nodes.
func onNodes(ctx context.Context, run *bench.Run, w network, n int, quick bool, cells []Cell, report *Report) (err error) {
	field, err := shape.New(ctx, n, w.link())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	dir, err := os.MkdirTemp(run.Dir, "nodes-")
	if err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	crew, err := field.Start(ctx, run.Program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop()) }()
	if len(report.Notes) == 0 {
		report.Notes = append(report.Notes, field.Notes()...)
	}
	on := crew.Nodes[0].API
	for name, copies := range map[string]int{"usual": 1, "whole": n - 1} {
		if _, err := on.GenerateDataset(ctx, graph(name, copies, quick), func(api.DatasetEvent) {}); err != nil {
			return err
		}
	}
	for i := range cells {
		c := &cells[i]
		j, err := train(ctx, on, c.job.way.ask(c.job.model, "usual", n, warm+timed))
		if err != nil {
			return err
		}
		r := reading{first: j.History[0].Seconds}
		c.Began = j.History[0].Bytes.Total()
		var later []float64
		for _, e := range j.History[warm:] {
			later, c.Sent = append(later, e.Seconds), e.Bytes.Total()
		}
		r.later = stats.Median(later)
		if w.name == networks[0].name && c.job.way.ceiling {
			if r.used, err = processors(ctx, crew, func(epochs int) api.TrainRequest { return c.job.way.ask(c.job.model, "whole", n, epochs) }); err != nil {
				return err
			}
		}
		c.rounds = append(c.rounds, r)
		run.Progress("    %s: %.3f s an epoch, %.2f s the first", c.name(), r.later, r.first)
	}
	return nil
}

// processors returns the processor time of all nodes in some epochs more than two; 0: of a small
// graph these take less than the system counts.
func processors(ctx context.Context, c *shape.Crew, ask func(epochs int) api.TrainRequest) (took time.Duration, err error) {
	for _, epochs := range []int{2, 2 + more} {
		before, err := bench.CPUTimes(c.Nodes)
		if err != nil {
			return 0, err
		}
		if _, err := train(ctx, c.Nodes[0].API, ask(epochs)); err != nil {
			return 0, err
		}
		after, err := bench.CPUTimes(c.Nodes)
		if err != nil {
			return 0, err
		}
		took = after - before - took
	}
	return max(0, took), nil
}

// train runs a job to its end and removes it.
func train(ctx context.Context, on *api.Client, r api.TrainRequest) (api.Job, error) {
	id, err := on.StartJob(ctx, r)
	if err != nil {
		return api.Job{}, err
	}
	j, err := on.WatchJob(ctx, id.ID, func(api.JobEvent) {})
	if err == nil && (j.State != "done" || len(j.History) != *r.Epochs) {
		err = fmt.Errorf("job %s is %s after %d epochs: %s", id.ID, j.State, len(j.History), j.Error)
	}
	if err != nil {
		return j, err
	}
	return j, on.RemoveJob(ctx, id.ID)
}

// figures has several nodes beside one, and their ceiling.
func figures(cells []Cell) (list []bench.Figure) {
	for i := range cells {
		c := &cells[i]
		if c.Nodes == 1 {
			continue
		}
		f := bench.Figure{Name: fmt.Sprintf("%d nodes over one, %s, %s", c.Nodes, c.Network, c.name()), Value: c.Speedup, Unit: "x"}
		if c.Ceiling > 0 {
			f = bench.Beside(f.Name, "x", c.Speedup, "ceiling", c.Ceiling)
		}
		switch {
		case c.Nodes == 8:
			four := slices.IndexFunc(cells, func(o Cell) bool { return o.Nodes == 4 && o.Network == c.Network && o.name() == c.name() })
			f = bench.Beside(f.Name, "x", c.Speedup, "four nodes", cells[four].Speedup)
			f.Bar, f.Holds = "above that of four", f.Ratio > 1
		case c.Nodes < 4 || c.Network == networks[2].name:
		case c.Way == little.name:
			f.Bar, f.Holds = fmt.Sprintf("at least %g x", scarce), c.Speedup >= scarce
		case c.Way == "" && c.Model == models[0].String():
			f.Bar, f.Holds = fmt.Sprintf("at least %g x", fourth), c.Speedup >= fourth
		default:
			f.Bar, f.Holds = fmt.Sprintf("at least %gx of the ceiling", share), f.Ratio >= share
		}
		list = append(list, f)
	}
	return list
}
