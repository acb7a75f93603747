// Package ogb reads folders of the Open Graph Benchmark: raw/ with packed tables of
// text or, of the largest graphs, archives of NumPy, and split/ with lists of vertices.
package ogb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
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
	tree   tree
	folder string // for sentences
	// there are the files in raw/ and the folders in split/.
	there, splits []string
	o             source.Options
	memory        *source.Memory
	// in is the folder within raw/ of tables that are not in raw/ itself, with a slash.
	in      map[string]string
	targets uint32 // vertices that edges may lead to
}

// IsArchive reports whether a file is an archive, by its name.
func IsArchive(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".zip") }

// Open reads the folder that raw/ and split/ are in: on this machine, in a store, or in a zip
// archive as the Open Graph Benchmark serves it.
func Open(ctx context.Context, name string, o source.Options) (graph.Source, error) {
	where, err := treeOf(ctx, name)
	if err != nil {
		return nil, err
	}
	g := &ogb{tree: where, folder: files.Base(name), o: o, memory: &source.Memory{Limit: o.Memory}}
	g.Info.Format = "ogb"
	var typed graph.Source // nil: there are no types
	if err = g.open(ctx); errors.Is(err, errTypes) {
		typed, err = g.types(ctx)
	}
	if err != nil {
		err = errors.Join(err, g.Assembled.Close(), where.close())
		if errors.Is(err, source.ErrMemory) {
			return nil, fmt.Errorf("%s: %w: raise {dataset.memory}", g.folder, err)
		}
		return nil, err
	}
	if typed != nil {
		return typed, nil
	}
	before := g.Closer
	g.Closer = func() error {
		if before != nil {
			return errors.Join(before(), where.close())
		}
		return where.close()
	}
	return &g.Assembled, nil
}

// look lists what there is.
func (g *ogb) look(ctx context.Context) (top []string, err error) {
	for folder, to := range map[string]*[]string{"": &top, "raw": &g.there, "split": &g.splits} {
		entries, err := g.tree.list(ctx, folder)
		if err != nil {
			return nil, fmt.Errorf("list the files of %s: %w", g.folder, err)
		}
		for _, e := range entries {
			if folder != "split" || e.folder {
				*to = append(*to, e.name)
			}
		}
	}
	return top, nil
}

func (g *ogb) has(raw string) bool { return slices.Contains(g.there, raw) }

func (g *ogb) open(ctx context.Context) error {
	top, err := g.look(ctx)
	switch {
	case err != nil:
		return err
	case g.has("triplet-type-list.csv.gz"):
		return errTypes
	case g.has("data.npz"):
		if err := g.archives(ctx); err != nil {
			return err
		}
	case g.has(ogbEdges):
		if err := g.tables(ctx); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s holds neither raw/edge.csv.gz nor raw/data.npz, as the Open Graph Benchmark's folders do: give the folder that raw/ and split/ are in", g.folder)
	}
	if err := g.readSplits(ctx, ""); err != nil {
		return err
	}
	if note := source.NotReadOf(g.folder, top, func(name string) bool { return name == "raw" || name == "split" }); note != "" {
		g.Remarks = append(g.Remarks, note)
	}
	g.Remarks = append(g.Remarks, "Edges were taken in the direction that they are listed in: the Open Graph Benchmark lists an undirected edge once, so that such a graph is to be imported with {dataset.undirected}.")
	return nil
}

// readSplits reads each folder in split/ as one split, in the order of the names, or the folder of
// a type in each.
func (g *ogb) readSplits(ctx context.Context, of string) error {
	for _, split := range g.splits {
		if len(g.Marks) == graph.MaxSplits {
			return fmt.Errorf("%s holds more than %d splits: leave some out", g.folder, graph.MaxSplits)
		}
		if err := g.pickled(ctx, split); err != nil {
			return err
		}
		m := source.Marking{Vertices: g.Info.Vertices, Memory: g.memory}
		if err := m.Room(1); err != nil {
			return err
		}
		for i, name := range []string{"train.csv.gz", "valid.csv.gz", "test.csv.gz"} {
			mark := graph.Train + graph.Mark(i)
			if err := g.readPart(ctx, &m, mark, "split/"+split+"/"+of+name); err != nil {
				return err
			}
		}
		g.Marks = append(g.Marks, m.Splits[0])
	}
	return nil
}

// pickled returns an error if a split is in files of PyTorch, as link datasets have theirs.
func (g *ogb) pickled(ctx context.Context, split string) error {
	found, err := g.tree.list(ctx, "split/"+split)
	if err != nil {
		return fmt.Errorf("list the files of split/%s: %w", split, err)
	}
	for _, f := range found {
		if f.name == "valid.pt" || f.name == "test.pt" {
			return fmt.Errorf("split/%s/%s holds Python objects, as the split of edges of a link dataset does, and loading them can run anything: if you trust it, save an archive of NumPy with edge_index, x, edges_valid, edges_test, negatives_valid and negatives_test, and import that", split, f.name)
		}
	}
	return nil
}

func (g *ogb) readPart(ctx context.Context, m *source.Marking, mark graph.Mark, name string) error {
	return g.lines(ctx, name, name, source.MaxLine, func(line uint64, text []byte) error {
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

// lines yields the lines of a file. name is for sentences.
func (g *ogb) lines(ctx context.Context, file, name string, bound int, yield func(line uint64, text []byte) error) error {
	f, err := g.tree.open(ctx, file)
	if err != nil {
		return fmt.Errorf("%s is missing: %w", name, err)
	}
	defer f.Close() // it was only read
	l := source.NewLines(ctx, path.Base(file), f, bound, nil)
	defer l.Close()
	l.Name = name
	return source.EachLine(ctx, l, yield)
}

// archives opens the raw files of the largest graphs: data.npz has edges and
// features, node-label.npz the labels.
func (g *ogb) archives(ctx context.Context) error {
	data, labels := g.tree.place("raw/data.npz"), g.tree.place("raw/node-label.npz")
	if data == "" {
		return fmt.Errorf("%s has its arrays packed within raw/data.npz, which is read at many places: unpack it, and give the folder that raw/ and split/ are in", g.folder)
	}
	if !g.has("node-label.npz") {
		return errors.New("raw/node-label.npz is missing: copy the folder again")
	}
	opened, err := npz.OpenOGB(ctx, data, labels, g.o, g.memory)
	if err != nil {
		return err
	}
	opened.Info.Format = g.Info.Format
	g.Assembled = *opened
	return nil
}
