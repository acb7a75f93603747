package speedup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// measure measures all cells. A ceiling is that of the first network: it has no part in it.
func measure(ctx context.Context, run *bench.Run, quick bool, report *Report) error {
	used := map[string]time.Duration{} // by cell
	for _, w := range networks {
		for _, n := range sizes {
			if err := onNodes(ctx, run, w, n, quick, used, report); err != nil {
				return fmt.Errorf("%d nodes, %s: %w", n, w.name, err)
			}
		}
	}
	for i := range report.Cells {
		c := &report.Cells[i]
		for _, one := range report.Cells {
			if one.Nodes == 1 && one.Network == c.Network && one.Model == c.Model {
				c.Speedup = one.Later / c.Later
			}
		}
		c.Ceiling = float64(c.Nodes) * float64(used[key(1, c.Model)]) / float64(used[key(c.Nodes, c.Model)])
	}
	return nil
}

func key(nodes int, model string) string { return fmt.Sprint(nodes, " ", model) }

// onNodes measures all models on so many nodes.
func onNodes(ctx context.Context, run *bench.Run, w network, n int, quick bool, used map[string]time.Duration, report *Report) (err error) {
	field, err := shape.New(ctx, n, w.link())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	dir := filepath.Join(run.Dir, fmt.Sprintf("%d-%d", n, w.rate))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	crew, err := field.Start(ctx, run.Program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop()) }()
	if len(report.Cells) == 0 {
		report.Notes = append(report.Notes, field.Notes()...)
	}
	on := crew.Nodes[0].API
	for name, copies := range map[string]int{"usual": 1, "whole": n - 1} {
		if _, err := on.GenerateDataset(ctx, graph(name, copies, quick), func(api.DatasetEvent) {}); err != nil {
			return err
		}
	}
	for _, m := range models {
		j, err := train(ctx, on, m.ask("usual", n, warm+timed))
		if err != nil {
			return err
		}
		c := Cell{Network: w.name, Nodes: n, Model: m.String(), First: j.History[0].Seconds, Began: j.History[0].Bytes.Total()}
		var later []float64
		for _, e := range j.History[warm:] {
			later, c.Sent = append(later, e.Seconds), e.Bytes.Total()
		}
		c.Later = stats.Median(later)
		report.Cells = append(report.Cells, c)
		run.Progress("  %s, %d nodes, %s: %.3f s an epoch, %.2f s the first", w.name, n, m, c.Later, c.First)
		if k := key(n, c.Model); used[k] == 0 {
			if used[k], err = processors(ctx, crew, func(epochs int) api.TrainRequest { return m.ask("whole", n, epochs) }); err != nil {
				return err
			}
		}
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
