package bench

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
)

// What a cut may be out of balance by: vertices, edges, training vertices.
var tolerance = []float64{1.05, 1.10, 1.10}

// many is the number of parts whose runs are judged, too.
const many = 64

// cuts cuts graphs with the multilevel partitioner and with METIS, at 8 and 64
// parts, and groups the 64 into runs as the shards of 2, 3, 4 and 8 nodes.
func (b *bench) cuts(ctx context.Context) ([]Figure, error) {
	var figures []Figure
	graphs, err := b.graphs()
	if err != nil {
		return nil, err
	}
	for _, g := range graphs {
		b.note("  %s", g.name)
		f, err := b.cutOne(ctx, g)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

type named struct {
	name string
	open func(context.Context) (graph.Source, error)
}

// graphs are the built-in one, those in the folder, and two that are made up.
func (b *bench) graphs() ([]named, error) {
	var list []named
	builtIn, err := cora.Write(b.dir)
	if err != nil {
		return nil, err
	}
	files := []string{builtIn}
	if b.cfg.Graphs != "" {
		found, err := filepath.Glob(filepath.Join(b.cfg.Graphs, "*.npz"))
		if err != nil {
			return nil, fmt.Errorf("look for graphs: %w", err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no graph in %s: --graphs takes a folder with NPZ files", b.cfg.Graphs)
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

func (b *bench) cutOne(ctx context.Context, of named) ([]Figure, error) {
	src, err := of.open(ctx)
	if err != nil {
		return nil, err
	}
	g, err := build.Undirected(ctx, src, b.dir)
	if err := errors.Join(err, src.Close()); err != nil {
		return nil, err
	}
	yardstick, err := newMetis(b.dir, of.name, g, tolerance[:g.Constraints])
	if errors.Is(err, errNoMetis) {
		b.note("  gpmetis is not installed, so nothing is compared with it: Debian has it in the package metis")
		yardstick = nil
	} else if err != nil {
		return nil, err
	}
	var figures []Figure
	var ours []uint16
	for _, parts := range []int{8, many} {
		begin := time.Now()
		ours, err = partition.Multilevel(ctx, g, partition.Options{Parts: parts, Seed: 1, Tolerance: tolerance[:g.Constraints]})
		if err != nil {
			return nil, err
		}
		took := time.Since(begin).Seconds()
		f := Figure{Name: fmt.Sprintf("%s, %d parts: edges cut", of.name, parts), Value: cutOf(g, ours), Unit: "edges"}
		speed := Figure{Name: fmt.Sprintf("%s, %d parts: speed", of.name, parts), Value: float64(len(g.Indices)) / 2e6 / took, Unit: "M edges/s"}
		if yardstick != nil {
			theirs, seconds, err := yardstick.cut(ctx, parts)
			if err != nil {
				return nil, err
			}
			f = against(f.Name, f.Unit, f.Value, "METIS", cutOf(g, theirs), "at most 1.10x", func(r float64) bool { return r <= 1.10 })
			speed = against(speed.Name, speed.Unit, speed.Value, "METIS", float64(len(g.Indices))/2e6/seconds, "at least 1 M edges/s and 1x",
				func(r float64) bool { return r >= 1 && speed.Value >= 1 })
		}
		figures = append(figures, f, speed)
		figures = append(figures, balances(g, ours, of.name, parts)...)
	}
	return append(figures, b.runs(ctx, g, ours, of.name, yardstick)...), ctx.Err()
}

func balances(g *partition.Graph, part []uint16, name string, parts int) []Figure {
	figures := []Figure{atMost(fmt.Sprintf("%s, %d parts: vertices, largest over average", name, parts), "x", balanceOf(g, part, parts, 0), 1.05)}
	edges := atMost(fmt.Sprintf("%s, %d parts: edges, largest over average", name, parts), "x", balanceOf(g, part, parts, 1), 1.10)
	if hub(g, parts) {
		// One vertex alone is over half of what a part should hold.
		edges.Bar, edges.Holds = "", true
	}
	return append(figures, edges)
}

// runs compares runs of the 64 parts with what METIS makes of the graph for as
// many nodes.
func (b *bench) runs(ctx context.Context, g *partition.Graph, part []uint16, name string, yardstick *metis) []Figure {
	var figures []Figure
	for _, nodes := range []int{2, 3, 4, 8} {
		f := Figure{Name: fmt.Sprintf("%s, runs of shards for %d nodes: edges cut", name, nodes), Value: cutOf(g, runs(part, many, nodes)), Unit: "edges"}
		if yardstick != nil {
			theirs, _, err := yardstick.cut(ctx, nodes)
			if err != nil {
				b.note("  %v", err)
				continue
			}
			f = against(f.Name, f.Unit, f.Value, "METIS", cutOf(g, theirs), "at most 1.25x", func(r float64) bool { return r <= 1.25 })
		}
		figures = append(figures, f)
	}
	return figures
}

// atMost makes a figure that must not be over a limit.
func atMost(name, unit string, value, limit float64) Figure {
	return Figure{Name: name, Value: value, Unit: unit, Bar: fmt.Sprintf("at most %.3g %s", limit, unit), Holds: value <= limit}
}
