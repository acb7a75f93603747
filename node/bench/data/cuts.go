package data

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/build"
	"github.com/hopmesh/hopmesh/engine/graph/cora"
	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/graph/read"
	"github.com/hopmesh/hopmesh/engine/partition"
	"github.com/hopmesh/hopmesh/node/bench"
)

// tolerance is how far from even a cut may be: in vertices, edges and training vertices.
var tolerance = []float64{1.05, 1.10, 1.10}

// many is the number of parts whose runs are measured too.
const many = 64

// cuts cuts graphs with the multilevel partitioner and with METIS, into 8 and into 64
// parts, and groups the 64 into runs, as nodes do with shards, for 2, 3, 4 and 8 nodes.
func cuts(ctx context.Context, run *bench.Run) ([]bench.Figure, error) {
	var figures []bench.Figure
	graphs, err := graphs(run)
	if err != nil {
		return nil, err
	}
	for _, g := range graphs {
		run.Progress("  %s", g.name)
		f, err := cutOne(ctx, run, g)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// A named graph can be opened.
type named struct {
	name string
	open func(context.Context) (graph.Source, error)
}

// graphs lists the built-in graph, those in the folder, and two generated ones.
func graphs(run *bench.Run) ([]named, error) {
	var list []named
	builtIn, err := cora.Write(run.Dir)
	if err != nil {
		return nil, err
	}
	files := []string{builtIn}
	if run.Graphs != "" {
		found, err := filepath.Glob(filepath.Join(run.Graphs, "*.npz"))
		if err != nil {
			return nil, fmt.Errorf("look for graphs: %w", err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no graph in %s: --graphs takes a folder with NPZ files", run.Graphs)
		}
		files = append(files, found...)
	}
	for _, f := range files {
		list = append(list, named{strings.TrimSuffix(filepath.Base(f), ".npz"), func(ctx context.Context) (graph.Source, error) {
			return read.Open(ctx, f, read.Options{})
		}})
	}
	for _, o := range []generate.Options{
		{Kind: "rmat", Vertices: 400_000, Edges: 6_000_000, Seed: 1},
		{Kind: "sbm", Vertices: 400_000, Edges: 12_000_000, Communities: 400, Classes: 40, Seed: 1},
	} {
		list = append(list, named{o.Kind, func(context.Context) (graph.Source, error) { return generate.New(o) }})
	}
	return list, nil
}

// cutOne measures the cuts of one graph.
func cutOne(ctx context.Context, run *bench.Run, of named) ([]bench.Figure, error) {
	src, err := of.open(ctx)
	if err != nil {
		return nil, err
	}
	g, err := build.Undirected(ctx, src, run.Dir)
	if err := errors.Join(err, src.Close()); err != nil {
		return nil, err
	}
	baseline, err := newMetis(run.Dir, of.name, g, tolerance[:g.Constraints])
	if errors.Is(err, errNoMetis) {
		run.Progress("  gpmetis is not installed, so nothing is compared with it: Debian has it in the package metis")
		baseline = nil
	} else if err != nil {
		return nil, err
	}
	var figures []bench.Figure
	var ours []uint16
	for _, parts := range []int{8, many} {
		begin := time.Now()
		ours, err = partition.Multilevel(ctx, g, partition.Options{Parts: parts, Seed: 1, Tolerance: tolerance[:g.Constraints]})
		if err != nil {
			return nil, err
		}
		took := time.Since(begin).Seconds()
		f := bench.Figure{Name: fmt.Sprintf("%s, %d parts: edges cut", of.name, parts), Value: cutOf(g, ours), Unit: "edges"}
		speed := bench.Figure{Name: fmt.Sprintf("%s, %d parts: speed", of.name, parts), Value: float64(len(g.Indices)) / 2e6 / took, Unit: "M edges/s"}
		if baseline != nil {
			theirs, seconds, err := baseline.cut(ctx, parts)
			if err != nil {
				return nil, err
			}
			f = bench.Against(f.Name, f.Unit, f.Value, "METIS", cutOf(g, theirs), bench.Most(1.10))
			speed = bench.Against(speed.Name, speed.Unit, speed.Value, "METIS", float64(len(g.Indices))/2e6/seconds,
				bench.Bar{Text: "at least 1 M edges/s and 1x", Holds: func(r float64) bool { return r >= 1 && speed.Value >= 1 }})
		}
		figures = append(figures, f, speed)
		figures = append(figures, balances(g, ours, of.name, parts)...)
	}
	return append(figures, runsOf(ctx, run, g, ours, of.name, baseline)...), ctx.Err()
}

// balances says how even a cut is.
func balances(g *partition.Graph, part []uint16, name string, parts int) []bench.Figure {
	figures := []bench.Figure{bench.AtMost(fmt.Sprintf("%s, %d parts: vertices, largest over average", name, parts), "x", balanceOf(g, part, parts, 0), 1.05)}
	edges := bench.AtMost(fmt.Sprintf("%s, %d parts: edges, largest over average", name, parts), "x", balanceOf(g, part, parts, 1), 1.10)
	if hub(g, parts) {
		// One vertex alone is over half of what a part should hold.
		edges.Bar, edges.Holds = "", true
	}
	return append(figures, edges)
}

// runsOf compares runs of the 64 parts with the cuts of METIS for as many nodes.
func runsOf(ctx context.Context, run *bench.Run, g *partition.Graph, part []uint16, name string, baseline *metis) []bench.Figure {
	var figures []bench.Figure
	for _, nodes := range []int{2, 3, 4, 8} {
		f := bench.Figure{Name: fmt.Sprintf("%s, runs of shards for %d nodes: edges cut", name, nodes), Value: cutOf(g, runs(part, many, nodes)), Unit: "edges"}
		if baseline != nil {
			theirs, _, err := baseline.cut(ctx, nodes)
			if err != nil {
				run.Progress("  %v", err)
				continue
			}
			f = bench.Against(f.Name, f.Unit, f.Value, "METIS", cutOf(g, theirs), bench.Most(1.25))
		}
		figures = append(figures, f)
	}
	return figures
}
