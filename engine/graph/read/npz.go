package read

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// openNPZ reads an archive of NumPy's arrays, in one of two layouts: that of
// shchur/gnn-benchmark, where edges and features are sparse matrices, and that in
// which users of PyTorch Geometric save edge_index, x, y and masks.
func openNPZ(ctx context.Context, path string, o Options) (graph.Source, error) {
	z, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	s, err := newNPZ(ctx, z, o)
	if err != nil {
		z.close()
		return nil, err
	}
	return s, nil
}

func newNPZ(ctx context.Context, z *archive, o Options) (graph.Source, error) {
	n := &npz{archive: z, o: o, memory: &memory{limit: o.Memory}}
	n.meta.Format = "npz"
	n.assembled.close = z.close
	matrix, list := z.has("adj_indptr", "adj_indices"), z.has("edge_index")
	var err error
	switch {
	case matrix && list:
		err = fmt.Errorf("%s holds edges both as edge_index and as adj_indptr and adj_indices: save it with one of them", z.name)
	case matrix:
		err = n.matrices(ctx)
	case list:
		err = n.lists(ctx)
	default:
		err = fmt.Errorf("%s holds neither edge_index nor adj_indptr and adj_indices, but %s: save the edges as edge_index, an array of two rows with each edge's source and target", z.name, z.listed())
	}
	if err != nil {
		return nil, err
	}
	return &n.assembled, nil
}

func (z *archive) listed() string {
	if len(z.keys) == 0 {
		return "no array"
	}
	return listed(z.keys)
}

// npz is an archive that is being opened.
type npz struct {
	*archive
	assembled
	o      Options
	memory *memory
	used   []string
}

// array returns an array or nil.
func (n *npz) array(key string) (*array, error) {
	n.used = append(n.used, key)
	return n.archive.array(key)
}

// need returns an array of integers or numbers in one dimension.
func (n *npz) need(key string, integers bool) (*array, error) {
	a, err := n.array(key)
	switch {
	case err != nil:
		return nil, err
	case a == nil:
		return nil, fmt.Errorf("%s holds no %s, but %s: save it again with all arrays of the matrix", n.name, key, n.listed())
	case len(a.shape) != 1 || integers && (a.float() || a.dtype.kind == 'b'):
		what := "numbers"
		if integers {
			what = "integers"
		}
		return nil, a.wrong("it has the shape %s and the type %s: save %s in one dimension", a.shaped(), a.dtype, what)
	}
	return a, nil
}

// count takes a number of vertices.
func (n *npz) count(a *array, v uint64) error {
	if v == 0 {
		return a.wrong("there are no vertices: check what was saved")
	}
	if v > graph.MaxVertices {
		return a.wrong("there are %d vertices, and at most %d can be taken: cut the graph down", v, graph.MaxVertices)
	}
	n.meta.Vertices = uint32(v)
	return nil
}

// rest reads what both layouts have: labels, and the splits as ids or as masks.
func (n *npz) rest(ctx context.Context, labels string) error {
	a, err := n.array(labels)
	if err != nil {
		return err
	}
	if a != nil {
		if n.labels, n.meta.Classes, err = readLabels(ctx, a, n.meta.Vertices, n.memory); err != nil {
			return err
		}
	}
	m := marking{vertices: n.meta.Vertices, memory: n.memory}
	for mark := graph.Train; mark <= graph.Test; mark++ {
		ids, err := n.array(partNames[mark] + "_idx")
		if err != nil {
			return err
		}
		mask, err := n.array(partNames[mark] + "_mask")
		switch {
		case err != nil:
			return err
		case ids != nil && mask != nil:
			return fmt.Errorf("%s holds both %s and %s: save one of them", n.name, ids.key, mask.key)
		case ids != nil:
			err = m.indices(ctx, ids, mark)
		case mask != nil:
			err = m.mask(ctx, mask, mark)
		}
		if err != nil {
			return err
		}
	}
	n.splits = m.splits
	n.noteUnused()
	return nil
}

// noteUnused says which arrays no one asked for.
func (n *npz) noteUnused() {
	switch unused := n.unused(n.used); len(unused) {
	case 0:
	case 1:
		n.note("%s: the array %s was not used.", n.name, unused[0])
	default:
		n.note("%s: the arrays %s were not used.", n.name, listed(unused))
	}
}

func (n *npz) note(format string, args ...any) {
	n.notes = append(n.notes, fmt.Sprintf(format, args...))
}
