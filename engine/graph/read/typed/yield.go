package typed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Mirror adds each edge in the other direction: under the same relation if it leads between
// vertices of one type, else under a relation of its own, whose name begins with rev-. It returns an
// error, and adds none, if such a name would be too long.
func (g *Graph) Mirror() error {
	if g.mirrored {
		return nil
	}
	for _, r := range g.relations {
		if _, err := r.said().Back(); err != nil {
			return err
		}
	}
	g.mirrored, g.meta.Edges = true, 2*g.meta.Edges
	g.describe()
	return nil
}

// said returns the relation as metadata have it.
func (r *relation) said() graph.Relation {
	return graph.Relation{Source: r.source.name, Name: r.name, Target: r.target.name, Edges: r.edges}
}

// describe sets the types of the metadata.
func (g *Graph) describe() {
	t := &graph.Types{}
	g.meta.NonZeros = 0
	for _, of := range g.types {
		n := uint64(of.Meta().Vertices)
		t.Vertices = append(t.Vertices, graph.VertexType{Name: of.name, Vertices: n, First: of.at, Features: of.width(), Bare: of.bare()})
		g.meta.NonZeros += n * uint64(of.width()) // at most: zeros are left out
	}
	for _, r := range g.relations {
		said := r.said()
		if g.mirrored && r.source == r.target {
			said.Edges *= 2
		}
		t.Relations = append(t.Relations, said)
	}
	for _, r := range g.relations {
		if g.mirrored && r.source != r.target {
			reverse, _ := r.said().Back() // Mirror has seen the error
			t.Relations = append(t.Relations, reverse)
		}
	}
	g.meta.Types = t
}

// number names the vertices TYPE/ID.
func (g *Graph) number() error {
	var room uint64
	for _, t := range g.types {
		room += roomFor(t.IDs(), t.Meta().Vertices)
	}
	return g.name(room, func(to []byte, t *vertexType, i uint32) []byte { return appendID(to, t.IDs(), i) })
}

// roomFor returns how many bytes the text of ids takes, at most.
func roomFor(ids graph.IDs, n uint32) uint64 {
	if ids.Strings != nil {
		return uint64(len(ids.Strings.Bytes))
	}
	return uint64(n) * 20 // digits of an integer
}

// appendID appends the text of an id.
func appendID(to []byte, ids graph.IDs, i uint32) []byte {
	switch {
	case ids.Strings != nil:
		return append(to, ids.Strings.Bytes[ids.Strings.Offsets[i]:ids.Strings.Offsets[i+1]]...)
	case ids.Ints != nil:
		return strconv.AppendInt(to, ids.Ints[i], 10)
	}
	return strconv.AppendUint(to, uint64(i), 10)
}

// name names the vertices by their types and ids, whose text has so many bytes. id appends that of a
// vertex of a type.
func (g *Graph) name(room uint64, id func(to []byte, t *vertexType, i uint32) []byte) error {
	names := uint64(g.meta.Vertices)
	for _, t := range g.types {
		room += uint64(t.Meta().Vertices) * uint64(len(t.name)+1)
	}
	if err := g.memory.Grow(0, room+8*(names+1)); err != nil {
		return err
	}
	g.ids = graph.Strings{Offsets: make([]int64, 1, names+1), Bytes: make([]byte, 0, room)}
	for _, t := range g.types {
		for i := range t.Meta().Vertices {
			g.ids.Bytes = id(append(append(g.ids.Bytes, t.name...), '/'), t, i)
			g.ids.Offsets = append(g.ids.Offsets, int64(len(g.ids.Bytes)))
		}
	}
	return nil
}

// learn takes the labels and splits of the one type that has labels.
func (g *Graph) learn() error {
	var learnt *vertexType
	for _, t := range g.types {
		for _, note := range t.Notes() {
			g.notes = append(g.notes, nodesFolder+"/"+note)
		}
		if t.Labels() == nil && t.Meta().Targets == graph.OneClass {
			continue
		}
		if learnt != nil {
			return fmt.Errorf("%s and %s both have labels, and vertices of one type are learnt: leave out the labels of the other", learnt.file, t.file)
		}
		learnt = t
	}
	if learnt == nil {
		for _, t := range g.types {
			g.unlearnt(t.Splits())
		}
		return nil
	}
	of, n := learnt.Meta(), uint64(g.meta.Vertices)
	g.meta.Classes, g.meta.Targets, g.meta.ClassNames = of.Classes, of.Targets, of.ClassNames
	marks := learnt.Splits()
	if err := g.memory.Grow(0, n*uint64(targetBytes(of)+len(marks))); err != nil {
		return err
	}
	first := int(learnt.first)
	switch cells := int(n) * of.Classes; of.Targets {
	case graph.YesOrNo:
		g.columns.YesOrNo = filled(cells, graph.Missing)
		copy(g.columns.YesOrNo[first*of.Classes:], learnt.Targets().YesOrNo)
	case graph.Numbers:
		g.columns.Numbers = filled(cells, nan)
		copy(g.columns.Numbers[first*of.Classes:], learnt.Targets().Numbers)
	default:
		g.labels = filled(int(n), graph.NoLabel)
		copy(g.labels[first:], learnt.Labels())
	}
	for _, of := range marks {
		all := make([]graph.Mark, n)
		copy(all[first:], of)
		g.splits = append(g.splits, all)
	}
	return nil
}

// unlearnt notes that splits are left out, as no vertices have labels.
func (g *Graph) unlearnt(splits [][]graph.Mark) {
	left := 0
	for _, marks := range splits {
		for _, mark := range marks {
			if mark != graph.Unmarked {
				left++
			}
		}
	}
	if left > 0 {
		g.notes = append(g.notes, fmt.Sprintf("No vertices have labels, so splits are left out: %d marks.", left))
	}
}

// nan is a missing number.
var nan = float32(math.NaN())

// targetBytes returns what the targets of a vertex take.
func targetBytes(m graph.Meta) int {
	switch m.Targets {
	case graph.YesOrNo:
		return m.Classes
	case graph.Numbers:
		return 4 * m.Classes
	}
	return 4
}

func filled[T any](n int, with T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = with
	}
	return all
}

func (g *Graph) Meta() graph.Meta       { return g.meta }
func (g *Graph) Labels() []int32        { return g.labels }
func (g *Graph) Targets() graph.Columns { return g.columns }
func (g *Graph) Splits() [][]graph.Mark { return g.splits }
func (g *Graph) IDs() graph.IDs         { return graph.IDs{Strings: &g.ids} }
func (g *Graph) Notes() []string        { return g.notes }

// Close closes all files.
func (g *Graph) Close() (err error) {
	for _, t := range g.types {
		err = errors.Join(err, t.Close())
	}
	for _, r := range g.relations {
		if r.close != nil {
			err = errors.Join(err, r.close())
		}
	}
	return err
}

// Edges yields the edges relation by relation, their relations as their weights.
func (g *Graph) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	var e edges
	reverse := len(g.relations)
	for i, r := range g.relations {
		both := g.mirrored && r.source == r.target
		err := r.each(ctx, func(b graph.EdgeBatch) error {
			if err := yield(e.of(r, b, i, false)); err != nil || !both {
				return err
			}
			return yield(e.of(r, b, i, true))
		})
		if err != nil {
			return err
		}
	}
	for _, r := range g.relations {
		if !g.mirrored || r.source == r.target {
			continue
		}
		if err := r.each(ctx, func(b graph.EdgeBatch) error { return yield(e.of(r, b, reverse, true)) }); err != nil {
			return err
		}
		reverse++
	}
	return nil
}

// each reads the edges, which must be as many as before.
func (r *relation) each(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	changed := fmt.Errorf("the edges %s-%s-%s were changed while they were read: import them again when nothing writes to them", r.source.name, r.name, r.target.name)
	seen := uint64(0)
	err := r.read(ctx, func(b graph.EdgeBatch) error {
		if seen += uint64(len(b.Src)); seen > r.edges {
			return changed
		}
		return yield(b)
	})
	if err == nil && seen != r.edges {
		return changed
	}
	return err
}

// edges is the memory of a batch.
type edges struct {
	src, dst  []uint32
	relations []float32
}

func (e *edges) of(r *relation, b graph.EdgeBatch, number int, back bool) graph.EdgeBatch {
	n := len(b.Src)
	e.src, e.dst, e.relations = source.RoomFor(e.src, n), source.RoomFor(e.dst, n), source.RoomFor(e.relations, n)
	for i := range n {
		e.src[i], e.dst[i], e.relations[i] = r.source.first+b.Src[i], r.target.first+b.Dst[i], float32(number)
	}
	if back {
		return graph.EdgeBatch{Src: e.dst, Dst: e.src, Weights: e.relations}
	}
	return graph.EdgeBatch{Src: e.src, Dst: e.dst, Weights: e.relations}
}

// Features yields the rows of all types as sparse ones, each in the columns of its type.
func (g *Graph) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	var r rows
	for _, t := range g.types {
		var err error
		if t.bare() {
			err = r.ones(ctx, t, yield)
		} else {
			err = t.Source.Features(ctx, func(b graph.FeatureBatch) error { return yield(r.of(t, &b)) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rows is the memory of a batch.
type rows struct{ b graph.FeatureBatch }

func (r *rows) begin() *graph.FeatureBatch {
	b := &r.b
	b.Vertices, b.Indptr, b.Indices, b.Values = b.Vertices[:0], append(b.Indptr[:0], 0), b.Indices[:0], b.Values[:0]
	return b
}

// ones yields rows that say only of which type a vertex is.
func (r *rows) ones(ctx context.Context, t *vertexType, yield func(graph.FeatureBatch) error) error {
	all := t.Meta().Vertices
	for at := uint32(0); at < all; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		b := r.begin()
		for end := min(all, at+source.EdgeBatch); at < end; at++ {
			b.Vertices, b.Indices, b.Values = append(b.Vertices, t.first+at), append(b.Indices, uint32(t.at)), append(b.Values, 1)
			b.Indptr = append(b.Indptr, int64(len(b.Indices)))
		}
		if err := yield(*b); err != nil {
			return err
		}
	}
	return nil
}

// of moves dense rows of a type to its columns.
func (r *rows) of(t *vertexType, from *graph.FeatureBatch) graph.FeatureBatch {
	b, width := r.begin(), t.width()
	for i := range len(from.Dense) / width {
		b.Vertices = append(b.Vertices, t.first+from.Vertex(i))
		for c, x := range from.Dense[i*width:][:width] {
			if x != 0 {
				b.Indices, b.Values = append(b.Indices, uint32(t.at+c)), append(b.Values, x)
			}
		}
		b.Indptr = append(b.Indptr, int64(len(b.Indices)))
	}
	return *b
}
