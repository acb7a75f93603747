package read

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// partNames are the parts of a split as archives call them, by their mark.
var partNames = [...]string{graph.Train: "train", graph.Validation: "val", graph.Test: "test"}

// marking collects the marks of splits.
type marking struct {
	vertices uint32
	memory   *memory
	splits   [][]graph.Mark
}

// want makes room for so many splits.
func (m *marking) want(a *array, splits uint64) error {
	if m.splits != nil {
		if uint64(len(m.splits)) != splits {
			return a.wrong("it has %d splits and another part has %d: give every part as many", splits, len(m.splits))
		}
		return nil
	}
	if splits == 0 || splits > graph.MaxSplits {
		return a.wrong("there are %d splits, and 1 to %d can be taken: leave some out", splits, graph.MaxSplits)
	}
	if err := m.room(splits); err != nil {
		return a.wrong("%d splits of %d vertices: %w: raise --memory", splits, m.vertices, err)
	}
	return nil
}

func (m *marking) room(splits uint64) error {
	if err := m.memory.grow(0, splits*uint64(m.vertices)); err != nil {
		return err
	}
	m.splits = make([][]graph.Mark, splits)
	for i := range m.splits {
		m.splits[i] = make([]graph.Mark, m.vertices)
	}
	return nil
}

// mark puts a vertex in a part. To be in it twice is no harm.
func (m *marking) mark(split, vertex uint64, part graph.Mark) error {
	at := &m.splits[split][vertex]
	if *at != graph.Unmarked && *at != part {
		of := ""
		if len(m.splits) > 1 {
			of = fmt.Sprintf(" of split %d", split)
		}
		return fmt.Errorf("vertex %d is in %s and in %s%s: take it out of one", vertex, partNames[*at], partNames[part], of)
	}
	*at = part
	return nil
}

// indices marks the vertices whose ids an array holds, [k] or [splits, k].
func (m *marking) indices(ctx context.Context, a *array, part graph.Mark) error {
	if len(a.shape) != 1 && len(a.shape) != 2 || a.float() || a.dtype.kind == 'b' || !a.rowByRow() {
		return a.wrong("it is %s%s of type %s: save it as a row of vertex ids for each split, as integers", order(a), a.shaped(), a.dtype)
	}
	splits, k := uint64(1), a.size
	if len(a.shape) == 2 {
		splits, k = a.shape[0], a.shape[1]
	}
	if err := m.want(a, splits); err != nil {
		return err
	}
	return a.each(ctx, func(first uint64, count int, b []byte) error {
		for i := range count {
			at := first + uint64(i)
			v := a.int(b, i)
			if v < 0 || v >= int64(m.vertices) {
				return a.wrong("split %d, entry %d: there is no vertex %d, as there are %d, numbered from 0: leave it out", at/k, at%k, v, m.vertices)
			}
			if err := m.mark(at/k, uint64(v), part); err != nil {
				return a.wrong("%w", err)
			}
		}
		return nil
	})
}

// mask marks the vertices for which an array is true, [vertices] or [vertices,
// splits].
func (m *marking) mask(ctx context.Context, a *array, part graph.Mark) error {
	if len(a.shape) == 0 || len(a.shape) > 2 || a.shape[0] != uint64(m.vertices) {
		return a.wrong("it has the shape %s and there are %d vertices: give a mask true or false for each vertex", a.shaped(), m.vertices)
	}
	splits := uint64(1)
	if len(a.shape) == 2 {
		splits = a.shape[1]
	}
	if err := m.want(a, splits); err != nil {
		return err
	}
	return a.each(ctx, func(first uint64, count int, b []byte) error {
		for i := range count {
			at := first + uint64(i)
			switch a.number(b, i) {
			case 0:
				continue
			case 1:
			default:
				return a.wrong("it holds numbers other than 0 and 1: save the mask as booleans")
			}
			split, vertex := at%splits, at/splits
			if a.fortran && len(a.shape) == 2 {
				split, vertex = at/a.shape[0], at%a.shape[0]
			}
			if err := m.mark(split, vertex, part); err != nil {
				return a.wrong("%w", err)
			}
		}
		return nil
	})
}

func order(a *array) string {
	if a.fortran {
		return "in Fortran order, "
	}
	return ""
}
