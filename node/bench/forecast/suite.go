package forecast

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/node/shape"
)

// A Row is a cell with what was forecast and measured.
type Row struct {
	cell
	Program string            `json:"program"` // its digest
	Failed  string            `json:"failed,omitempty"`
	Bytes   [2]uint64         `json:"bytes"` // forecast, and measured
	Memory  [2]uint64         `json:"memory"`
	Seconds [2]float64        `json:"seconds"`
	Parts   api.ForecastParts `json:"parts"`
	Phases  api.JobPhases     `json:"phases"` // of the middle epoch, the mean over the nodes
	Used    float64           `json:"used"`   // seconds of processor time of all nodes, in a middle epoch
	Idle    float64           `json:"idle"`   // the same in a second without a job
}

// Report is what --json prints.
type Report struct {
	bench.Report
	Rows []Row `json:"cells"`
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	s, err := open(cfg, stderr)
	if err != nil {
		return err
	}
	suite := bench.Suite{Title: "Forecast against measurement", Parts: []bench.Part{{What: "forecasts beside jobs on shaped links", Measure: s.measure}}}
	if err := bench.Measure(ctx, cfg, suite, s.report, stdout, stderr); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: finished cells are kept in %s, and the same command goes on from there", err, s.file)
		}
		return err
	}
	return nil
}

// A suite is one run.
type suite struct {
	cfg     bench.Config
	file    string // of finished cells
	program string // digest of this one
	kept    map[string]Row
	report  *Report
}

func open(cfg bench.Config, stderr io.Writer) (*suite, error) {
	folder := cfg.Scale.Dir
	if folder == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for what is kept: %w", err)
		}
		folder = filepath.Join(caches, "hopmesh-forecast")
	}
	if cfg.Scale.Quick {
		folder = filepath.Join(folder, "quick")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for what is kept: %w", err)
	}
	program, err := os.ReadFile(cfg.Program)
	if err != nil {
		return nil, fmt.Errorf("read this program: %w", err)
	}
	sum := sha256.Sum256(program)
	s := &suite{cfg: cfg, file: filepath.Join(folder, "cells.json"), program: hex.EncodeToString(sum[:6]), kept: map[string]Row{}, report: &Report{}}
	if err := s.load(); err != nil {
		return nil, err
	}
	todo := 0
	all := cells(cfg.Scale.Rows, cfg.Scale.Quick)
	for _, c := range all {
		if _, is := s.kept[c.String()]; !is {
			todo++
		}
	}
	_, _ = fmt.Fprintf(stderr, "%d of %d cells are to be measured: about %d minutes\n", todo, len(all), 1+todo/4)
	return s, nil
}

// load reads the cells that this program has finished.
func (s *suite) load() error {
	text, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var rows []Row
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	if err != nil {
		return fmt.Errorf("read the finished cells in %s: %w", s.file, err)
	}
	for _, r := range rows {
		if r.Program == s.program || s.cfg.Scale.Older {
			s.kept[r.String()] = r
		}
	}
	return nil
}

// keep adds a finished cell, in a file that is whole at any time.
func (s *suite) keep(r Row) error {
	r.Program = s.program
	s.kept[r.String()] = r
	var rows []Row
	for _, of := range s.kept {
		rows = append(rows, of)
	}
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.String(), b.String()) })
	text, err := json.MarshalIndent(rows, "", " ")
	if err == nil {
		err = os.WriteFile(s.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(s.file+".new", s.file)
	}
	if err != nil {
		return fmt.Errorf("keep a finished cell: %w", err)
	}
	return nil
}

// measure measures the cells that are not kept, mesh by mesh, and judges all.
func (s *suite) measure(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	all := cells(s.cfg.Scale.Rows, s.cfg.Scale.Quick)
	for _, n := range nodeCounts {
		var todo []cell
		for _, c := range all {
			if _, is := s.kept[c.String()]; c.Nodes == n && !is && !s.cfg.Scale.Show {
				todo = append(todo, c)
			}
		}
		if len(todo) > 0 {
			if err := s.mesh(ctx, run, n, todo); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range all {
		if r, is := s.kept[c.String()]; is {
			s.report.Rows = append(s.report.Rows, r)
		}
	}
	l := link(1)
	s.report.Notes = append(s.report.Notes, fmt.Sprintf("each node has a link of %s, and its share of %.3g cores", shape.FormatRate(l.Rate), l.Cores))
	return figuresOf(s.report.Rows), nil
}

// mesh measures cells on so many nodes.
func (s *suite) mesh(ctx context.Context, run *bench.Run, nodes int, todo []cell) (err error) {
	field, err := shape.New(ctx, nodes, link(nodes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, field.Close()) }()
	for _, n := range field.Notes() {
		if !slices.Contains(s.report.Notes, n) {
			s.report.Notes = append(s.report.Notes, n)
		}
	}
	dir := filepath.Join(run.Dir, fmt.Sprint("of", nodes))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a folder to measure in: %w", err)
	}
	crew, err := field.Start(ctx, run.Program, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop()) }()
	var idle []uint64
	for _, node := range crew.Nodes {
		idle = append(idle, held(node.PID()))
	}
	made := map[string]bool{}
	for _, c := range todo {
		for _, g := range graphs(s.cfg.Scale.Quick) {
			if g.Name == c.Graph && !made[g.Name] {
				if _, err := crew.Nodes[0].API.GenerateDataset(ctx, g, func(api.DatasetEvent) {}); err != nil {
					return err
				}
				made[g.Name] = true
			}
		}
		r, err := measure(ctx, crew, idle, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c, err)
		}
		run.Progress("  %s: bytes %d and %d, memory %d and %d, %.3g s and %.3g s %s", c, r.Bytes[0], r.Bytes[1], r.Memory[0], r.Memory[1], r.Seconds[0], r.Seconds[1], r.Failed)
		if err := s.keep(r); err != nil {
			return err
		}
	}
	return nil
}

// measure trains a cell, and then forecasts it on all nodes at once.
func measure(ctx context.Context, crew *shape.Crew, idle []uint64, c cell) (Row, error) {
	r := Row{cell: c}
	if err := settle(ctx, crew, idle); err != nil {
		return r, err
	}
	r.Idle = -usedBy(crew)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
	r.Idle += usedBy(crew)
	on := crew.Nodes[0].API
	watched := watch(crew)
	defer watched.end()
	id, err := on.StartJob(ctx, c.job())
	if err != nil {
		return r, err
	}
	var ends []float64 // of each epoch, by processor time
	job, err := on.WatchJob(ctx, id.ID, func(e api.JobEvent) {
		if e.Epoch != nil {
			ends = append(ends, usedBy(crew))
		}
	})
	if err != nil {
		return r, err
	}
	r.Memory[1] = watched.end()
	if len(ends) == epochs {
		r.Used = (ends[epochs-2] - ends[0]) / (epochs - 2)
	}
	if err := on.RemoveJob(ctx, id.ID); err != nil {
		return r, err
	}
	if job.State != "done" || len(job.History) != epochs {
		r.Failed = fmt.Sprintf("the job is %s: %s", job.State, job.Error)
		return r, nil
	}
	var took []float64
	sent := uint64(0)
	middle := job.History[1 : epochs-1]
	for _, e := range middle {
		took = append(took, e.Seconds)
		sent += e.Bytes.Total()
	}
	r.Bytes[1], r.Seconds[1], r.Phases = sent/uint64(len(middle)), stats.Median(took), middle[len(middle)/2].Phases
	return r, r.forecast(ctx, crew)
}

// forecast asks all nodes at once.
func (r *Row) forecast(ctx context.Context, crew *shape.Crew) error {
	l := link(r.Nodes)
	ask := api.ForecastRequest{Job: r.job(), Nodes: []int{r.Nodes}, Bandwidth: float64(l.Rate) / 8, Cores: l.Cores}
	answers, errs := make([]api.JobForecast, r.Nodes), make([]error, r.Nodes)
	var asking sync.WaitGroup
	for i, node := range crew.Nodes {
		asking.Go(func() { answers[i], errs[i] = patiently(ctx, node.API, ask) })
	}
	asking.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var seconds []float64
	for _, a := range answers {
		for _, row := range a.Rows {
			if row.Strategy == r.Strategy {
				seconds = append(seconds, row.Seconds)
				r.Bytes[0], r.Memory[0], r.Parts = row.Bytes.Total(), row.Memory, row.Parts
			}
		}
	}
	if len(seconds) == 0 {
		return errors.New("the forecast has no row for it")
	}
	r.Seconds[0] = stats.Median(seconds)
	return nil
}

// patiently asks for a forecast again where other nodes are not ready to lend shards.
func patiently(ctx context.Context, node *api.Client, r api.ForecastRequest) (f api.JobForecast, err error) {
	const attempts = 5
	for range attempts {
		if f, err = node.Forecast(ctx, r, func(api.ForecastRow) {}); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return f, context.Cause(ctx)
		case <-time.After(2 * time.Second):
		}
	}
	return f, err
}

// off returns how far a forecast is from what was measured, as a share of that.
func off(forecast, measured float64) float64 {
	if measured == 0 {
		return math.Inf(1)
	}
	return forecast/measured - 1
}

// figuresOf makes the figures: how many cells hold, and the mean of times.
func figuresOf(rows []Row) []bench.Figure {
	var holds [3]int
	var times []float64
	done := 0
	for i := range rows {
		r := &rows[i]
		if r.Failed != "" {
			continue
		}
		done++
		o := r.off()
		times = append(times, math.Abs(o[2]))
		for k, bar := range []float64{bytesBar, memoryBar, timeBar} {
			if math.Abs(o[k]) <= bar {
				holds[k]++
			}
		}
	}
	if done == 0 {
		return nil
	}
	all := fmt.Sprintf("of %d", len(rows))
	count := func(name string, n int) bench.Figure {
		return bench.Figure{Name: name, Value: float64(n), Unit: "cells", Bar: all, Holds: n == len(rows)}
	}
	return []bench.Figure{
		count(fmt.Sprintf("bytes within %.0f %%", 100*bytesBar), holds[0]),
		count(fmt.Sprintf("memory within %.0f %%", 100*memoryBar), holds[1]),
		count(fmt.Sprintf("time within %.0f %%", 100*timeBar), holds[2]),
		{Name: "distance of times, mean", Value: 100 * stats.Mean(times), Unit: "%", Bar: fmt.Sprintf("at most %.0f %%", 100*meanBar), Holds: stats.Mean(times) <= meanBar},
	}
}

// off returns how far bytes, memory and time are.
func (r *Row) off() [3]float64 {
	return [3]float64{
		off(float64(r.Bytes[0]), float64(r.Bytes[1])), off(float64(r.Memory[0]), float64(r.Memory[1])), off(r.Seconds[0], r.Seconds[1]),
	}
}

// Show adds the table of cells.
func (r *Report) Show(p *result.Page) {
	p.Text(fmt.Sprintf("Each cell: what `train forecast` said, then what the job took, and how far the first is from the second. Bars: bytes %.0f %%, memory %.0f %%, time %.0f %% at worst and %.0f %% on average. All nodes of a cell share this machine, each with its share of the processors; they forecast at the same time, and the median counts. Bytes and times are of epochs 2 to 4 of five. Jobs keep no rows of other nodes.",
		100*bytesBar, 100*memoryBar, 100*timeBar, 100*meanBar))
	r.Report.Show(p)
	t := result.Table{Head: []string{"Graph", "Model", "Strategy", "Nodes", "MB an epoch", "", "MiB a node", "", "Seconds an epoch", "", ""}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Failed != "" {
			t.Add(row.Graph, row.Model, row.Strategy, row.Nodes, "", "", "", "", "", "", row.Failed)
			continue
		}
		o, missed := row.off(), []string(nil)
		for k, bar := range []float64{bytesBar, memoryBar, timeBar} {
			if math.Abs(o[k]) > bar {
				missed = append(missed, []string{"bytes", "memory", "time"}[k])
			}
		}
		verdict := "holds"
		if missed != nil {
			verdict = "MISSES " + strings.Join(missed, ", ")
		}
		mb := func(n uint64) float64 { return float64(n) / 1e6 }
		mib := func(n uint64) float64 { return float64(n) / (1 << 20) }
		t.Add(row.Graph, row.Model, row.Strategy, row.Nodes,
			fmt.Sprintf("%.2f / %.2f", mb(row.Bytes[0]), mb(row.Bytes[1])), percent(o[0]),
			fmt.Sprintf("%.1f / %.1f", mib(row.Memory[0]), mib(row.Memory[1])), percent(o[1]),
			fmt.Sprintf("%.2f / %.2f", row.Seconds[0], row.Seconds[1]), percent(o[2]), verdict)
	}
	p.Table(t)
}

func percent(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }
