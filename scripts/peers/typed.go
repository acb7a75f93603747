package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/recipe"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/strategies"
	"github.com/hopmesh/hopmesh/engine/train"
	"github.com/hopmesh/hopmesh/engine/trained"
	"github.com/hopmesh/hopmesh/node/bench/result"
	"github.com/hopmesh/hopmesh/scripts/graphs"
)

// This file compares an R-GCN on a typed graph with DGL's. What is trained is fixed before
// anything is timed: a graph of ogbn-mag's shape with edges both ways, fan-outs over all relations
// and fan-outs of each, and for each number of threads all ways in turn, several times.

const (
	typedScale  = 0.2
	typedBatch  = 1024
	typedHidden = 64
	typedSteps  = 20 // of DGL in a round; hopmesh trains an epoch
	// typedBar is how many times as long the fastest of DGL's ways takes, at least.
	typedBar = 3.0
)

// A typedCase is how neighbours are drawn.
type typedCase struct {
	name    string
	fanouts []int
	each    bool // they are those of each relation
}

var typedCases = []typedCase{{"over all relations", []int{10, 10}, false}, {"of each relation", []int{5, 5}, true}}

// A typedWay is one of DGL's ways to train an R-GCN.
type typedWay struct {
	name, who string
	workers   int // processes that sample ahead
}

// ways returns those of DGL's ways that draw so, by so many threads. With more than one thread, one
// of them may be a process that samples ahead.
func (c *typedCase) ways(threads int) (ways []typedWay) {
	if c.each {
		ways = []typedWay{{"DGL, HeteroGraphConv", "hetero", 0}}
	} else {
		ways = []typedWay{{"DGL, RelGraphConv", "edges", 0}, {"DGL, a block for each relation", "blocks", 0}}
	}
	if threads > 1 {
		last := ways[len(ways)-1]
		ways = append(ways, typedWay{last.name + ", sampled ahead", last.who, 1})
	}
	return ways
}

// recipe returns the recipe of the R-GCN.
func (c *typedCase) recipe(relations int) (recipe.Recipe, error) {
	r := recipe.DefaultRecipe("rgcn")
	r.Model.Layers, r.Model.Hidden, r.Model.Dropout, r.Model.InputDropout = len(c.fanouts), typedHidden, 0, 0
	r.Model.Tell(relations, "")
	r.Optimizer.WeightDecay, r.Rate = 0, 0.003
	r.Batch, r.Fanouts, r.Epochs, r.EvalEvery, r.Features, r.Seed = typedBatch, c.fanouts, 1, 1, "none", 1
	if !c.each {
		return r, nil
	}
	return r, r.FanEach(slices.Repeat([][]int{c.fanouts}, relations))
}

func compareTyped(ctx context.Context, program string, scale float64, out string) (err error) {
	if err := result.Writable(out); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "hopmesh-typed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	fmt.Fprintln(os.Stderr, "cutting the graph")
	g, err := graphs.Generate(ctx, generate.Options{Preset: "mag", Scale: scale, Seed: 1}, true, filepath.Join(scratch, "graph"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	page := &result.Page{Title: "Typed graphs beside DGL", Command: "make bench-typed"}
	how := fmt.Sprintf("ogbn-mag's shape, %g of its size, edges both ways; rgcn, hidden %d, batch %d; training alone, medians of %d rounds in turn",
		scale, typedHidden, typedBatch, rounds)
	page.Note(how)
	fmt.Printf("%s\n\n", how)
	for _, threads := range []int{1, 2} {
		for _, c := range typedCases {
			table, err := c.table(ctx, program, g, threads)
			if err != nil {
				return err
			}
			page.Table(table)
			if err := table.Text(os.Stdout); err != nil {
				return err
			}
			fmt.Println()
		}
	}
	return errors.Join(ctx.Err(), page.Write(out))
}

// table times all ways with so many threads.
func (c *typedCase) table(ctx context.Context, program string, g *graphs.Graph, threads int) (table result.Table, err error) {
	p, err := newPython(ctx, program, "scripts/peers/typed.py", threads)
	if err != nil {
		return table, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, err := p.ask(map[string]any{"do": "open", "folder": g.Folder}); err != nil {
		return table, fmt.Errorf("open the graph in Python: %w", err)
	}
	sides := []*side{{name: "hopmesh", train: func() ([]float64, float64, error) { return c.ours(ctx, g, threads) }}}
	for _, w := range c.ways(threads) {
		_, err := p.ask(map[string]any{"do": "build", "name": w.name, "case": map[string]any{
			"who": w.who, "layers": len(c.fanouts), "hidden": typedHidden, "lr": 0.003, "weight_decay": 0, "batch": typedBatch,
			"fanouts": c.fanouts, "seed": 1, "workers": w.workers,
		}})
		sides = append(sides, &side{name: w.name, err: err, train: func() ([]float64, float64, error) { return typedTheirs(p, w.name) }})
	}
	for range rounds {
		for _, s := range sides {
			if s.err != nil {
				continue
			}
			var seconds []float64
			seconds, _, s.err = s.train()
			s.seconds = append(s.seconds, seconds...)
		}
	}
	if sides[0].err != nil {
		return table, sides[0].err
	}
	return c.report(sides, threads), ctx.Err()
}

// report makes the table of one number of threads. The first side is hopmesh's.
func (c *typedCase) report(sides []*side, threads int) result.Table {
	table := result.Table{
		Title: fmt.Sprintf("Fan-outs %v %s, %s (load at the end: %s)", c.fanouts, c.name, recipe.Count(threads, "thread"), load()),
		Head:  []string{"By", "A step", "Fewest to most", "Over hopmesh", "Bar", ""},
	}
	ours, fastest := stats.Median(sides[0].seconds), 0.0
	for _, s := range sides[1:] {
		if m := stats.Median(s.seconds); s.err == nil && (fastest == 0 || m < fastest) {
			fastest = m
		}
	}
	for i, s := range sides {
		if s.err != nil {
			table.Add(s.name, s.err, "", "", "", "")
			continue
		}
		m := stats.Median(s.seconds)
		over, bar, verdict := "", "", ""
		if i > 0 {
			over = fmt.Sprintf("%.2fx", m/ours)
			if m == fastest {
				bar, verdict = fmt.Sprintf("at least %gx", typedBar), "holds"
				if m < typedBar*ours {
					verdict = "FALLS SHORT"
				}
			}
		}
		table.Add(s.name, fmt.Sprintf("%.2f ms", m*1e3), spread(s.seconds), over, bar, verdict)
	}
	return table
}

// ours trains an epoch by hopmesh, on as many processors as it has threads.
func (c *typedCase) ours(ctx context.Context, g *graphs.Graph, threads int) (seconds []float64, test float64, err error) {
	r, err := c.recipe(g.Shards[0].Related.Count)
	if err != nil {
		return nil, 0, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	_, err = train.Run(ctx, r, g.Shards, train.Options{
		Strategies: strategies.All, Threads: threads,
		Report: func(e trained.Epoch) { seconds = append(seconds, e.Seconds/float64(e.Steps)) },
	})
	return seconds, 0, err
}

// typedTheirs returns the seconds of a step of one of DGL's ways.
func typedTheirs(p *python, name string) ([]float64, float64, error) {
	a, err := p.ask(map[string]any{"do": "train", "name": name, "steps": typedSteps, "limit": limit.Seconds()})
	if err != nil {
		return nil, 0, err
	}
	for i := range a.Seconds {
		a.Seconds[i] /= float64(a.Steps[i])
	}
	return a.Seconds, 0, nil
}

// spread returns the fewest and the most milliseconds of a step.
func spread(seconds []float64) string {
	return fmt.Sprintf("%.1f to %.1f", slices.Min(seconds)*1e3, slices.Max(seconds)*1e3)
}
