package speedup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/node/shape"
)

// A Cell is one model on so many nodes.
type Cell struct {
	Network string  `json:"network"`
	Nodes   int     `json:"nodes"`
	Model   string  `json:"model"`
	First   float64 `json:"first"`   // seconds of the first epoch
	Later   float64 `json:"seconds"` // of one of the next, the median
	Sent    uint64  `json:"bytes"`   // in the last epoch, by all nodes
	Began   uint64  `json:"first_bytes"`
	Speedup float64 `json:"speedup"` // over one node
	Ceiling float64 `json:"ceiling"` // the most that it could be

	rounds []reading
}

// A reading is one round of a cell.
type reading struct {
	first, later float64
	used         time.Duration // of processors; 0: not measured on this network
}

// Report is what --json prints.
type Report struct {
	bench.Report
	Cells []Cell `json:"cells"`
}

// Show adds the cells to the figures.
func (r *Report) Show(p *result.Page) {
	r.Report.Show(p)
	t := result.Table{Title: "Epochs", Head: []string{"Link", "Nodes", "Layers x hidden", "First epoch", "Sent", "Later epochs", "Sent", "Over one node", "Ceiling"}}
	for _, c := range r.Cells {
		t.Add(c.Network, c.Nodes, c.Model, fmt.Sprintf("%.2f s", c.First), fmt.Sprintf("%.1f MB", float64(c.Began)/1e6),
			fmt.Sprintf("%.3f s", c.Later), fmt.Sprintf("%.1f MB", float64(c.Sent)/1e6), fmt.Sprintf("%.2fx", c.Speedup), fmt.Sprintf("%.2fx", c.Ceiling))
	}
	p.Table(t)
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	report := &Report{}
	suite := bench.Suite{Title: "Speedup", Parts: []bench.Part{{What: "how much faster several nodes are than one", Measure: func(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
		if err := measure(ctx, run, cfg.Scale.Quick, report); err != nil {
			return nil, err
		}
		return figures(report.Cells), nil
	}}}}
	return bench.Measure(ctx, cfg, suite, report, stdout, stderr)
}

// measure measures all cells, round by round.
func measure(ctx context.Context, run *bench.Run, quick bool, report *Report) error {
	for _, w := range networks {
		for _, n := range sizes {
			for _, m := range models {
				report.Cells = append(report.Cells, Cell{Network: w.name, Nodes: n, Model: m.String()})
			}
		}
	}
	for round := range rounds {
		cells := report.Cells
		for _, w := range networks {
			for _, n := range sizes {
				run.Progress("  round %d of %d: %s, %d nodes", round+1, rounds, w.name, n)
				if err := onNodes(ctx, run, w, n, quick, cells[:len(models)], report); err != nil {
					return fmt.Errorf("%d nodes, %s: %w", n, w.name, err)
				}
				cells = cells[len(models):]
			}
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
	for i := range cells {
		for _, r := range cells[i].rounds {
			used[key(cells[i].Nodes, cells[i].Model)] += r.used
		}
	}
	for i := range cells {
		c := &cells[i]
		one := slices.IndexFunc(cells, func(o Cell) bool { return o.Nodes == 1 && o.Network == c.Network && o.Model == c.Model })
		var first, later, faster []float64
		for round, r := range c.rounds {
			first, later = append(first, r.first), append(later, r.later)
			faster = append(faster, cells[one].rounds[round].later/r.later)
		}
		c.First, c.Later, c.Speedup = stats.Median(first), stats.Median(later), stats.Median(faster)
		c.Ceiling = float64(c.Nodes) * float64(used[key(1, c.Model)]) / float64(used[key(c.Nodes, c.Model)])
	}
}

func key(nodes int, model string) string { return fmt.Sprint(nodes, " ", model) }

// onNodes measures a round of all models on so many nodes, whose cells are given.
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
	for i, m := range models {
		j, err := train(ctx, on, m.ask("usual", n, warm+timed))
		if err != nil {
			return err
		}
		c := &cells[i]
		r := reading{first: j.History[0].Seconds}
		c.Began = j.History[0].Bytes.Total()
		var later []float64
		for _, e := range j.History[warm:] {
			later, c.Sent = append(later, e.Seconds), e.Bytes.Total()
		}
		r.later = stats.Median(later)
		if w == networks[0] {
			if r.used, err = processors(ctx, crew, func(epochs int) api.TrainRequest { return m.ask("whole", n, epochs) }); err != nil {
				return err
			}
		}
		c.rounds = append(c.rounds, r)
		run.Progress("    %s: %.3f s an epoch, %.2f s the first", m, r.later, r.first)
	}
	return nil
}

// processors returns the processor time of all nodes in some epochs more than two.
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
	if took <= 0 {
		return 0, fmt.Errorf("%d epochs took no processor time that can be measured", more)
	}
	return took, nil
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

// figures has four nodes beside their ceiling.
func figures(cells []Cell) (list []bench.Figure) {
	for _, c := range cells {
		if c.Nodes == 1 {
			continue
		}
		f := bench.Beside(fmt.Sprintf("%d nodes over one, %s, %s", c.Nodes, c.Network, c.Model), "x", c.Speedup, "ceiling", c.Ceiling)
		switch {
		case c.Nodes < sizes[len(sizes)-1]:
		case c.Model == models[0].String():
			f.Bar, f.Holds = fmt.Sprintf("at least %g x", fourth), c.Speedup >= fourth
		default:
			f.Bar, f.Holds = fmt.Sprintf("at least %gx of the ceiling", share), f.Ratio >= share
		}
		list = append(list, f)
	}
	return list
}
