// Package planetoid reads the raw files of kimiyoung/planetoid, which are pickles of
// Python, and assembles them as tkipf/gcn and PyTorch Geometric do.
//
// A pickle is a program. The one here builds inert values only, never calls anything,
// and stops at any name that is not on a short list.
package planetoid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/web"
)

// planetoidFiles are the endings of Planetoid's files. x and y are the features and
// labels of the training vertices, tx and ty of the test vertices, allx and ally of
// all but the test vertices. x is the beginning of allx and is not read.
var planetoidFiles = []string{".test.index", ".allx", ".ally", ".graph", ".tx", ".ty", ".x", ".y"}

// planetoidName returns NAME of ind.NAME.x and the other files.
func planetoidName(file string) string {
	rest, ok := strings.CutPrefix(file, "ind.")
	if !ok {
		return ""
	}
	for _, ending := range planetoidFiles {
		if name, ok := strings.CutSuffix(rest, ending); ok {
			return name
		}
	}
	return ""
}

// IsPrefix reports whether path is not there itself but is how the names of a graph's
// files begin.
func IsPrefix(path string) bool {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	info, err := os.Stat(path + ".allx")
	return err == nil && info.Mode().IsRegular()
}

// IsFile reports whether a file is called as Planetoid's are.
func IsFile(file string) bool { return planetoidName(file) != "" }

// IsName reports whether the names of a graph's files may begin like this.
func IsName(file string) bool { return strings.HasPrefix(file, "ind.") && len(file) > len("ind.") }

// Open reads a graph. The path is their folder, one of them, or how all their
// names begin. Behind http it is one of the latter two, as nothing can be listed there.
func Open(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	p := &planetoid{memory: &source.Memory{Limit: o.Memory}}
	if err := p.find(ctx, path); err != nil {
		return nil, err
	}
	p.Info.Format = "planetoid"
	for _, part := range []func(context.Context) error{p.readTest, p.readFeatures, p.readLabels, p.readGraph} {
		if err := part(ctx); err != nil {
			if errors.Is(err, source.ErrMemory) {
				return nil, fmt.Errorf("%s: %w: raise {dataset.memory}", p.prefix, err)
			}
			return nil, err
		}
	}
	if p.rest != "" {
		p.Remarks = append(p.Remarks, p.rest)
	}
	return &p.Assembled, nil
}

// find finds out how the names of the files begin, and where they are.
func (p *planetoid) find(ctx context.Context, path string) error {
	what, err := files.Look(ctx, path)
	base := files.Base(path)
	switch {
	case err != nil && web.Is(path):
		return fmt.Errorf("look at %s: %w", files.Show(path), err)
	case what == files.Folder:
		return p.findIn(ctx, path)
	case planetoidName(base) != "":
		base = "ind." + planetoidName(base)
	case web.Is(path) && !IsName(base):
		return fmt.Errorf("%s is not one of Planetoid's files, and files behind http can't be listed: give the address of one called ind.NAME.x", web.Show(path))
	case err == nil && !web.Is(path):
		return fmt.Errorf("%s is not one of Planetoid's files: give one called ind.NAME.x, or their folder", base)
	} // else it is how the names begin: the files' own errors say more
	p.prefix = base
	p.path = func(name string) string { return filepath.Join(filepath.Dir(path), name) }
	if web.Is(path) {
		p.path = func(name string) string { return web.Beside(path, name) }
	}
	return nil
}

// findIn finds the one graph of a folder.
func (p *planetoid) findIn(ctx context.Context, folder string) error {
	all, err := files.List(ctx, folder)
	if err != nil {
		return fmt.Errorf("list the folder: %w", err)
	}
	var names []string
	for _, file := range all {
		if name := planetoidName(file); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	shown := files.Show(folder)
	switch len(names) {
	case 0:
		return fmt.Errorf("%s holds none of Planetoid's files, ind.NAME.x, ind.NAME.graph and their like: check the path", shown)
	case 1:
		p.prefix = "ind." + names[0]
		p.path = func(name string) string { return files.Join(folder, name) }
		p.rest = source.NotReadOf(files.Base(folder), all, IsFile)
		return nil
	}
	one := files.Join(folder, "ind."+names[0])
	if web.Is(folder) {
		one += ".x" // how names begin can't be looked for there
	}
	return fmt.Errorf("%s holds the graphs %s: give the path of one, such as %s", shown, source.Listed(names), one)
}

// open opens one of the files.
func (p *planetoid) open(ctx context.Context, ending string) (files.File, error) {
	path := p.path(p.prefix + ending)
	if !web.Is(path) {
		if err := source.Regular(path); err != nil {
			return nil, err
		}
	}
	f, err := files.Open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open a file of the graph: %w", err)
	}
	return f, nil
}

// planetoid is a graph that is being assembled. The first vertices are the rows of
// allx. The rows of tx follow, in the order of test.index.
type planetoid struct {
	source.Assembled
	prefix string                   // ind.NAME
	path   func(name string) string // of a file
	rest   string                   // a remark on what else is in the folder, or ""
	memory *source.Memory
	test   []uint32
	before uint32 // rows of allx
}

func (p *planetoid) name(ending string) string { return p.prefix + ending }

func (p *planetoid) wrong(ending, format string, args ...any) error {
	return fmt.Errorf("%s: %w", p.name(ending), fmt.Errorf(format, args...))
}

// load reads one of the pickles and returns its size, too. Memory of times that size
// is counted.
func (p *planetoid) load(ctx context.Context, ending string, times uint64) (v any, size int64, err error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	f, err := p.open(ctx, ending)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	size = f.Size()
	if err := p.memory.Grow(0, times*uint64(size)); err != nil {
		return nil, 0, err
	}
	v, err = unpickle(ctx, io.NewSectionReader(f, 0, size), size, p.memory)
	switch {
	case ctx.Err() != nil, errors.Is(err, source.ErrMemory):
		return nil, 0, err
	case errors.Is(err, errPickle), errors.Is(err, errPickleEarly):
		return nil, 0, p.wrong(ending, "%w: copy the file again", err)
	case err != nil:
		return nil, 0, p.wrong(ending, "%w", err)
	}
	return v, size, nil
}

// readTest reads the ids of the test vertices, one a line.
func (p *planetoid) readTest(ctx context.Context) error {
	const ending = ".test.index"
	f, err := p.open(ctx, ending)
	if err != nil {
		return err
	}
	defer f.Close()
	l := source.NewLines(ctx, p.name(ending), io.NewSectionReader(f, 0, f.Size()), source.MaxLine, nil)
	defer l.Close()
	const inMap = 16 // bytes of an id there
	seen := map[uint32]bool{}
	defer func() { p.memory.Free(inMap * uint64(len(seen))) }()
	return source.EachLine(ctx, l, func(line uint64, text []byte) error {
		v, ok := source.ParseID(source.Trim(text))
		if !ok || v < 0 || v >= graph.MaxVertices {
			return p.wrong(ending, "line %d: %s is not a vertex: write one id in each line", line, source.Shorten(text))
		}
		if seen[uint32(v)] {
			return p.wrong(ending, "line %d: vertex %d is there twice: copy the file again", line, v)
		}
		if err := p.memory.Grow(0, inMap); err != nil {
			return err
		}
		seen[uint32(v)] = true
		p.test, err = source.Enlarge(p.memory, p.test, 1, 4)
		p.test = append(p.test, uint32(v))
		return err
	})
}

// number computes how many vertices there are, given how many come before those of
// the test. Ids that the test leaves out are vertices without features and labels;
// citeseer has some.
func (p *planetoid) number(before uint64) error {
	if len(p.test) == 0 || uint64(slices.Min(p.test)) < before {
		return p.wrong(".test.index", "its ids have to begin with %d, as ind.NAME.allx has so many rows: take all files from one place", before)
	}
	const most = 2 // times as many ids as are in the test, at which there is more gap than test
	last := uint64(slices.Max(p.test))
	if before > graph.MaxVertices || last-before >= most*uint64(len(p.test))+64 {
		return p.wrong(".test.index", "vertex %d is too far behind the %d of ind.NAME.allx: take all files from one place", last, before)
	}
	p.before, p.Info.Vertices = uint32(before), uint32(last+1)
	if gaps := last + 1 - before - uint64(len(p.test)); gaps > 0 {
		p.Remarks = append(p.Remarks, fmt.Sprintf("%s leaves out ids (%d of them), which were taken as vertices without features, label or place in the split.", p.name(".test.index"), gaps))
	}
	return nil
}

// readFeatures reads the rows of allx and tx.
func (p *planetoid) readFeatures(ctx context.Context) error {
	var matrices [2]*rowsInMemory
	for i, ending := range []string{".allx", ".tx"} {
		v, _, err := p.load(ctx, ending, 3)
		if err != nil {
			return err
		}
		m, ok := v.(*pyMatrix)
		if !ok {
			return p.wrong(ending, "it holds no sparse matrix of SciPy (csr_matrix): take the file from kimiyoung/planetoid")
		}
		if matrices[i], err = m.rows(); err != nil {
			return p.wrong(ending, "%w", err)
		}
	}
	allx, tx := matrices[0], matrices[1]
	if allx.width != tx.width {
		return p.wrong(".tx", "it has %d columns and ind.NAME.allx has %d: take all files from one place", tx.width, allx.width)
	}
	if len(tx.indptr)-1 != len(p.test) {
		return p.wrong(".tx", "it has %d rows and ind.NAME.test.index has %d lines: take all files from one place", len(tx.indptr)-1, len(p.test))
	}
	if err := p.number(uint64(len(allx.indptr) - 1)); err != nil {
		return err
	}
	p.Info.Features, p.Info.Sparse, p.Info.NonZeros = allx.width, true, uint64(len(allx.indices)+len(tx.indices))
	if p.Info.Features == 0 {
		p.Info.Sparse = false
		return nil
	}
	p.ReadFeatures = func(ctx context.Context, yield func(graph.FeatureBatch) error) error {
		for _, b := range []graph.FeatureBatch{
			{Indptr: allx.indptr, Indices: allx.indices, Values: allx.values},
			{Indptr: tx.indptr, Indices: tx.indices, Values: tx.values, Vertices: p.test},
		} {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if len(b.Indptr) == 1 {
				continue
			}
			if err := yield(b); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// classes reads labels from one-hot rows. A row of zeros means no label.
func (p *planetoid) classes(ctx context.Context, ending string) (labels []int32, width uint64, err error) {
	v, _, err := p.load(ctx, ending, 2)
	if err != nil {
		return nil, 0, err
	}
	a, ok := v.(*pyArray)
	if !ok || len(a.Shape) != 2 || a.Shape[1] == 0 || a.Shape[1] > source.MaxClasses {
		return nil, 0, p.wrong(ending, "it holds no array with a row for each vertex and a column for each class: take the file from kimiyoung/planetoid")
	}
	rows, width := a.Shape[0], a.Shape[1]
	labels = make([]int32, rows)
	for r := range rows {
		labels[r] = graph.NoLabel
		for c := range width {
			at := r*width + c
			if a.Fortran {
				at = c*rows + r
			}
			switch a.Number(a.raw, int(at)) {
			case 0:
			case 1:
				if labels[r] != graph.NoLabel {
					return nil, 0, p.wrong(ending, "row %d has two classes, %d and %d, and a vertex has one: leave one of them", r, labels[r], c)
				}
				labels[r] = int32(c)
			default:
				return nil, 0, p.wrong(ending, "row %d, column %d is neither 0 nor 1: write labels as one-hot rows", r, c)
			}
		}
	}
	return labels, width, nil
}

// validation is how many validation vertices Planetoid's public split has.
const validation = 500

func (p *planetoid) readLabels(ctx context.Context) error {
	trained, _, err := p.classes(ctx, ".y")
	if err != nil {
		return err
	}
	before, width, err := p.classes(ctx, ".ally")
	if err != nil {
		return err
	}
	tested, testedWidth, err := p.classes(ctx, ".ty")
	if err != nil {
		return err
	}
	switch {
	case len(before) != int(p.before):
		return p.wrong(".ally", "it has %d rows and ind.NAME.allx has %d: take all files from one place", len(before), p.before)
	case len(tested) != len(p.test) || testedWidth != width:
		return p.wrong(".ty", "it has %d rows and %d columns, and %d and %d were expected: take all files from one place", len(tested), testedWidth, len(p.test), width)
	case len(trained) > len(before):
		return p.wrong(".y", "it has %d rows and ind.NAME.ally has %d: take all files from one place", len(trained), len(before))
	}
	if err := p.memory.Grow(0, 5*uint64(p.Info.Vertices)); err != nil {
		return err
	}
	p.Classes = append(before, slices.Repeat([]int32{graph.NoLabel}, int(p.Info.Vertices-p.before))...)
	marks := make([]graph.Mark, p.Info.Vertices)
	for i := range min(len(trained)+validation, len(before)) {
		marks[i] = graph.Validation
		if i < len(trained) {
			marks[i] = graph.Train
		}
	}
	for i, v := range p.test {
		p.Classes[v], marks[v] = tested[i], graph.Test
	}
	p.Marks = [][]graph.Mark{marks}
	p.Info.Classes = int(width)
	return nil
}

// readGraph reads edges in both directions, whichever end lists them, and each pair
// once. Self-loops are left out, as in all published results on these graphs.
func (p *planetoid) readGraph(ctx context.Context) error {
	const ending = ".graph"
	v, size, err := p.load(ctx, ending, 16)
	if err != nil {
		return err
	}
	d, ok := v.(*pyDict)
	if !ok || len(d.items)%2 != 0 {
		return p.wrong(ending, "it holds no dict of vertices and lists of neighbours: take the file from kimiyoung/planetoid")
	}
	vertex := func(v any) (uint64, error) {
		if id, ok := v.(int64); ok && id >= 0 && id < int64(p.Info.Vertices) {
			return uint64(id), nil
		}
		if id, ok := v.(int64); ok {
			return 0, p.wrong(ending, "there is not a vertex %d, as there are %d, numbered from 0: take all files from one place", id, p.Info.Vertices)
		}
		return 0, p.wrong(ending, "a vertex in it is not an integer: take the file from kimiyoung/planetoid")
	}
	var pairs []uint64
	neighboursListed, loops := 0, 0
	for i := 0; i < len(d.items); i += 2 {
		from, err := vertex(d.items[i])
		if err != nil {
			return err
		}
		neighbours, ok := d.items[i+1].(*pyList)
		if !ok {
			return p.wrong(ending, "the neighbours of vertex %d are not a list: take the file from kimiyoung/planetoid", from)
		}
		// A list may be referenced many times.
		if neighboursListed += len(neighbours.items); int64(neighboursListed) > size {
			return p.wrong(ending, "it lists more neighbours than a file of its size can hold: take the file from kimiyoung/planetoid")
		}
		if pairs, err = source.Enlarge(p.memory, pairs, 2*len(neighbours.items), 8); err != nil {
			return err
		}
		for _, n := range neighbours.items {
			to, err := vertex(n)
			if err != nil {
				return err
			}
			if to == from {
				loops++
				continue
			}
			pairs = append(pairs, from<<32|to, to<<32|from)
		}
	}
	slices.Sort(pairs)
	pairs = slices.Compact(pairs)
	if loops > 0 {
		p.Remarks = append(p.Remarks, fmt.Sprintf("%s: edges of a vertex with itself (%d of them) were left out.", p.name(ending), loops))
	}
	p.Info.Edges = uint64(len(pairs))
	p.ReadEdges = func(ctx context.Context, yield func(graph.EdgeBatch) error) error {
		var b graph.EdgeBatch
		for part := range slices.Chunk(pairs, source.EdgeBatch) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b.Src, b.Dst = b.Src[:0], b.Dst[:0]
			for _, pair := range part {
				b.Src, b.Dst = append(b.Src, uint32(pair>>32)), append(b.Dst, uint32(pair))
			}
			if err := yield(b); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
