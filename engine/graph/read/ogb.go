package read

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// isOGB says whether a folder is laid out as the Open Graph Benchmark's are.
func isOGB(path string) bool {
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

// ogb is a folder of the Open Graph Benchmark's that is being opened. Its raw files
// are packed tables of text, or, of the largest graphs, archives of NumPy.
type ogb struct {
	assembled
	folder string
	o      Options
	memory *memory
}

func openOGB(ctx context.Context, path string, o Options) (graph.Source, error) {
	g := &ogb{folder: path, o: o, memory: &memory{limit: o.Memory}}
	g.meta.Format = "ogb"
	if err := g.open(ctx); err != nil {
		err = errors.Join(err, g.assembled.Close())
		if errors.Is(err, errMemory) {
			return nil, fmt.Errorf("%s: %w: raise --memory", filepath.Base(path), err)
		}
		return nil, err
	}
	return &g.assembled, nil
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
	g.notes = append(g.notes, "Edges were taken in the direction that they are listed in: the Open Graph Benchmark lists an undirected edge once, so that such a graph is to be imported with --undirected.")
	return nil
}

// readSplits takes each kind of split as one, in the order of the names.
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
		if len(g.splits) == graph.MaxSplits {
			return fmt.Errorf("%s holds more than %d splits: leave some out", folder, graph.MaxSplits)
		}
		m := marking{vertices: g.meta.Vertices, memory: g.memory}
		if err := m.room(1); err != nil {
			return err
		}
		for i, name := range []string{"train.csv.gz", "valid.csv.gz", "test.csv.gz"} {
			mark := graph.Train + graph.Mark(i)
			if err := g.readPart(ctx, &m, mark, filepath.Join(folder, e.Name(), name), "split/"+e.Name()+"/"+name); err != nil {
				return err
			}
		}
		g.splits = append(g.splits, m.splits[0])
	}
	return nil
}

func (g *ogb) readPart(ctx context.Context, m *marking, mark graph.Mark, path, name string) error {
	return g.lines(ctx, path, name, maxLine, func(line uint64, text []byte) error {
		v, ok := parseID(trim(text))
		if !ok || v < 0 || v >= int64(g.meta.Vertices) {
			return fmt.Errorf("%s, line %d: there is no vertex %s, as there are %d, numbered from 0: leave it out", name, line, shorten(text), g.meta.Vertices)
		}
		if err := m.mark(0, uint64(v), mark); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, line, err)
		}
		return nil
	})
}

// lines yields a file's lines.
func (g *ogb) lines(ctx context.Context, path, name string, bound int, yield func(line uint64, text []byte) error) error {
	if _, err := regular(path); err != nil {
		return fmt.Errorf("%s is missing: %w", name, err)
	}
	l, err := openLines(ctx, path, bound, nil)
	if err != nil {
		return err
	}
	defer l.close()
	l.called = name
	return eachLine(ctx, l, yield)
}
