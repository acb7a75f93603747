package soak

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/bench/result"
)

// A Round is what the nodes took after one round.
type Round struct {
	After float64   `json:"after"` // seconds since the first began
	Nodes []Reading `json:"nodes"`
}

// Report is what --json prints.
type Report struct {
	bench.Report
	Rounds []Round  `json:"rounds"`
	Failed []string `json:"failed,omitempty"`
}

// Show adds a table of tenths to the figures.
func (r *Report) Show(p *result.Page) {
	r.Report.Show(p)
	t := result.Table{Title: "Medians of the rounds", Head: []string{"Rounds", "Until", "Memory, MiB", "Goroutines", "Descriptors", "Disk, MiB"}}
	const parts = 10
	for i := range parts {
		from, to := i*len(r.Rounds)/parts, (i+1)*len(r.Rounds)/parts
		if from == to {
			continue
		}
		row := []any{fmt.Sprintf("%d to %d", from+1, to), (time.Duration(r.Rounds[to-1].After) * time.Second).String()}
		for _, k := range kinds {
			var of []string
			for node := range nodes {
				of = append(of, fmt.Sprintf("%.0f", k.median(r.Rounds[from:to], node)))
			}
			row = append(row, strings.Join(of, " "))
		}
		t.Add(row...)
	}
	p.Table(t)
	for _, f := range r.Failed {
		p.Note(f)
	}
}

// A kind is one of the things that are read.
type kind struct {
	name, unit string
	most       float64
	of         func(Reading) float64
}

var kinds = []kind{
	{"memory", "MiB", mostMemory, func(r Reading) float64 { return r.Memory }},
	{"goroutines", "", mostGoroutines, func(r Reading) float64 { return r.Goroutines }},
	{"descriptors", "", mostDescriptors, func(r Reading) float64 { return r.Descriptors }},
	{"disk", "MiB", mostDisk, func(r Reading) float64 { return r.Disk }},
}

// median returns that of a node in some rounds.
func (k kind) median(rounds []Round, node int) float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, k.of(r.Nodes[node]))
	}
	return stats.Median(all)
}

// Measure runs the suite.
func Measure(ctx context.Context, cfg bench.Config, stdout, stderr io.Writer) error {
	report := &Report{}
	suite := bench.Suite{Title: "Soak", Parts: []bench.Part{{What: "what a mesh takes that is always at work", Measure: func(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
		if err := measure(ctx, run, cfg, report); err != nil {
			return nil, err
		}
		return figures(report), nil
	}}}}
	return bench.Measure(ctx, cfg, suite, report, stdout, stderr)
}

func measure(ctx context.Context, run *bench.Run, cfg bench.Config, report *Report) error {
	m, err := begin(ctx, run)
	if err != nil {
		return err
	}
	defer m.end()
	begin := time.Now()
	last := time.Duration(cfg.Minutes) * time.Minute
	for round := 0; cfg.Scale.Quick && round < quick || !cfg.Scale.Quick && time.Since(begin) < last; round++ {
		if err := m.round(ctx, round); err != nil {
			if ctx.Err() != nil {
				return err
			}
			report.Failed = append(report.Failed, fmt.Sprintf("Round %d failed: %v.", round+1, err))
			run.Progress("  round %d failed: %v", round+1, err)
		}
		list, err := m.read(ctx)
		if err != nil {
			return err
		}
		report.Rounds = append(report.Rounds, Round{time.Since(begin).Seconds(), list})
		if round%20 == 0 {
			run.Progress("  round %d after %s: %s", round+1, time.Since(begin).Round(time.Second), list)
		}
	}
	return nil
}

// String is what a reading is called while they are made.
func (r Reading) String() string {
	return fmt.Sprintf("%.0f MiB, %.0f goroutines, %.0f descriptors, %.0f MiB of disk", r.Memory, r.Goroutines, r.Descriptors, r.Disk)
}

// figures compares quarters of the rounds, for the node that has grown most.
func figures(r *Report) []bench.Figure {
	took := 0.0
	if n := len(r.Rounds); n > 0 {
		took = r.Rounds[n-1].After / 60
	}
	list := []bench.Figure{
		{Name: fmt.Sprintf("rounds within %.0f minutes", took), Value: float64(len(r.Rounds))},
		bench.AtMost("rounds that failed", "", float64(len(r.Failed)), 0),
	}
	quarter := len(r.Rounds) / 4
	if quarter == 0 {
		return list
	}
	early, late := r.Rounds[quarter:2*quarter], r.Rounds[len(r.Rounds)-quarter:]
	for _, k := range kinds {
		grown := 0.0
		for node := range nodes {
			if more := k.median(late, node) - k.median(early, node); node == 0 || more > grown {
				grown = more
			}
		}
		list = append(list, bench.AtMost(k.name+": the last quarter's median less the second's, of the node that grew most", k.unit, grown, k.most))
	}
	return list
}
