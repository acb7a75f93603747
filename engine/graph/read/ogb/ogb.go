// Package ogb reads folders of the Open Graph Benchmark: raw/ with packed tables of
// text or, of the largest graphs, archives of NumPy, and split/ with lists of vertices.
package ogb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/npz"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// IsFolder reports whether a folder is laid out as the Open Graph Benchmark's are.
func IsFolder(path string) bool {
	for _, name := range []string{"edge.csv.gz", "data.npz", "triplet-type-list.csv.gz"} {
		if exists(filepath.Join(path, "raw", name)) {
			return true
		}
	}
	return exists(filepath.Join(path, "raw")) && exists(filepath.Join(path, "split"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// ogb is a folder that is being opened.
type ogb struct {
	source.Assembled
	folder string
	o      source.Options
	memory *source.Memory
}

// Open reads the folder that raw/ and split/ are in.
func Open(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	g := &ogb{folder: path, o: o, memory: &source.Memory{Limit: o.Memory}}
	g.Info.Format = "ogb"
	if err := g.open(ctx); err != nil {
		err = errors.Join(err, g.Assembled.Close())
		if errors.Is(err, source.ErrMemory) {
			return nil, fmt.Errorf("%s: %w: raise {dataset.memory}", filepath.Base(path), err)
		}
		return nil, err
	}
	return &g.Assembled, nil
}

func (g *ogb) raw(name string) string { return filepath.Join(g.folder, "raw", name) }

func (g *ogb) open(ctx context.Context) error {
	switch {
	case exists(g.raw("triplet-type-list.csv.gz")):
		return fmt.Errorf("%s has vertices and edges of several kinds, and only graphs of one kind can be taken: import one kind of its edges as csv", filepath.Base(g.folder))
	case exists(g.raw("data.npz")):
		if err := g.archives(ctx); err != nil {
			return err
		}
	case exists(g.raw("edge.csv.gz")):
		if err := g.tables(ctx); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s holds neither raw/edge.csv.gz nor raw/data.npz, as the Open Graph Benchmark's folders do: give the folder that raw/ and split/ are in", g.folder)
	}
	if err := g.readSplits(ctx); err != nil {
		return err
	}
	if note := source.NotRead(g.folder, func(name string) bool { return name == "raw" || name == "split" }); note != "" {
		g.Remarks = append(g.Remarks, note)
	}
	g.Remarks = append(g.Remarks, "Edges were taken in the direction that they are listed in: the Open Graph Benchmark lists an undirected edge once, so that such a graph is to be imported with {dataset.undirected}.")
	return nil
}

// readSplits reads each folder in split/ as one split, in the order of the names.
func (g *ogb) readSplits(ctx context.Context) error {
	folder := filepath.Join(g.folder, "split")
	if !exists(folder) {
		return nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("list the splits: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if len(g.Marks) == graph.MaxSplits {
			return fmt.Errorf("%s holds more than %d splits: leave some out", folder, graph.MaxSplits)
		}
		m := source.Marking{Vertices: g.Info.Vertices, Memory: g.memory}
		if err := m.Room(1); err != nil {
			return err
		}
		for i, name := range []string{"train.csv.gz", "valid.csv.gz", "test.csv.gz"} {
			mark := graph.Train + graph.Mark(i)
			if err := g.readPart(ctx, &m, mark, filepath.Join(folder, e.Name(), name), "split/"+e.Name()+"/"+name); err != nil {
				return err
			}
		}
		g.Marks = append(g.Marks, m.Splits[0])
	}
	return nil
}

func (g *ogb) readPart(ctx context.Context, m *source.Marking, mark graph.Mark, path, name string) error {
	return g.lines(ctx, path, name, source.MaxLine, func(line uint64, text []byte) error {
		v, ok := source.ParseID(source.Trim(text))
		if !ok || v < 0 || v >= int64(g.Info.Vertices) {
			return fmt.Errorf("%s, line %d: there is not a vertex %s, as there are %d, numbered from 0: leave it out", name, line, source.Shorten(text), g.Info.Vertices)
		}
		if err := m.Mark(0, uint64(v), mark); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, line, err)
		}
		return nil
	})
}

// lines yields the lines of a file.
func (g *ogb) lines(ctx context.Context, path, name string, bound int, yield func(line uint64, text []byte) error) error {
	if err := source.Regular(path); err != nil {
		return fmt.Errorf("%s is missing: %w", name, err)
	}
	l, err := source.OpenLines(ctx, path, bound, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	l.Name = name
	return source.EachLine(ctx, l, yield)
}

// archives opens the raw files of the largest graphs: data.npz has edges and
// features, node-label.npz the labels.
func (g *ogb) archives(ctx context.Context) error {
	for _, name := range []string{"data.npz", "node-label.npz"} {
		if err := source.Regular(g.raw(name)); err != nil {
			return fmt.Errorf("raw/%s is missing: %w", name, err)
		}
	}
	opened, err := npz.OpenOGB(ctx, g.raw("data.npz"), g.raw("node-label.npz"), g.o, g.memory)
	if err != nil {
		return err
	}
	opened.Info.Format = g.Info.Format
	g.Assembled = *opened
	return nil
}
