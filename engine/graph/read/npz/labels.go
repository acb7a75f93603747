package npz

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// readLabels reads a class for each vertex, or targets in columns. NaN and -1 mean no label.
func (n *npz) readLabels(ctx context.Context, a *array) error {
	asked, one, err := n.o.Asked()
	if err != nil {
		return err
	}
	wide := len(a.Shape) == 2 && a.Shape[1] > 1
	switch {
	case wide && one:
		return a.wrong("it has %d columns, and a vertex has one label: save one column, or numpy.argmax(%s, axis=1) if they are one-hot", a.Shape[1], a.key)
	case wide || asked != graph.OneClass:
		return n.readTargets(ctx, a, asked)
	}
	err = n.readClasses(ctx, a)
	if errors.Is(err, source.ErrFraction) && !one {
		n.Classes, n.Info.Classes = nil, 0
		return n.readTargets(ctx, a, graph.Numbers)
	}
	return err
}

// readTargets reads targets in columns.
func (n *npz) readTargets(ctx context.Context, a *array, asked graph.Targets) error {
	vertices := uint64(n.Info.Vertices)
	switch {
	case a.Text():
		return a.wrong("it holds text, and targets are numbers: save them as numbers")
	case len(a.Shape) == 0 || len(a.Shape) > 2 || a.Shape[0] != vertices || a.size%vertices != 0 || a.size == 0:
		return a.wrong("it has the shape %s and there are %d vertices: give each vertex a row of targets, NaN where one is missing", a.shaped(), vertices)
	case len(a.Shape) == 2 && a.Shape[1] > 1 && !a.rowByRow():
		return a.wrong("its columns, not its rows, lie one after another (Fortran order): save numpy.ascontiguousarray of it")
	case a.size/vertices > graph.MaxTargets:
		return a.wrong("it has %d columns of targets, and at most %d can be taken: leave some out", a.size/vertices, graph.MaxTargets)
	}
	t := source.Targets{Memory: n.memory, Columns: int(a.size / vertices), Whole: !a.Float()}
	err := a.each(ctx, func(_ uint64, count int, b []byte) error {
		err := t.Add(count, func(i int) float64 { return a.Number(b, i) })
		if errors.Is(err, source.ErrMemory) {
			return a.wrong("%w: raise {dataset.memory}", err)
		}
		if err != nil {
			return a.wrong("%w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	note, err := t.Settle(asked, &n.Info, &n.Columns)
	if err != nil {
		return a.wrong("%w", err)
	}
	n.Remarks = append(n.Remarks, fmt.Sprintf("%s: %s.", a.name, note))
	return n.nameClasses(ctx)
}

// readClasses reads a class for each vertex.
func (n *npz) readClasses(ctx context.Context, a *array) error {
	vertices := n.Info.Vertices
	if len(a.Shape) == 0 || len(a.Shape) > 2 || a.Shape[0] != uint64(vertices) || a.size != uint64(vertices) {
		return a.wrong("it has the shape %s and there are %d vertices: give each vertex a label, -1 if it has none", a.shaped(), vertices)
	}
	classes := &source.Classes{Memory: n.memory}
	var name []byte
	err := a.each(ctx, func(first uint64, count int, b []byte) error {
		var err error
		if n.Classes, err = source.Enlarge(n.memory, n.Classes, count, 4); err != nil {
			return a.wrong("%w: raise {dataset.memory}", err)
		}
		for i := range count {
			var label int32
			switch {
			case a.Text():
				name = a.Append(name[:0], b, i)
				label, err = classes.Number(name)
			case a.Float():
				label, err = source.FloatLabel(a.Number(b, i))
			default:
				label, err = source.IntLabel(a.Int(b, i))
			}
			if err != nil {
				return a.wrong("vertex %d: %w", first+uint64(i), err)
			}
			n.Classes = append(n.Classes, label)
			n.Info.Classes = max(n.Info.Classes, int(label)+1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if a.Text() {
		names, note := source.Named(a.name, classes.Sort(n.Classes))
		n.Info.ClassNames, n.Remarks = names, append(n.Remarks, note)
		return nil
	}
	return n.nameClasses(ctx)
}

// nameClasses takes the names of numbered classes, or of columns of targets, from an array of
// text, if there is one.
func (n *npz) nameClasses(ctx context.Context) error {
	if !n.has("class_names") {
		return nil
	}
	a, err := n.archive.array("class_names")
	if err != nil || !a.Text() || len(a.Shape) != 1 || a.size != uint64(n.Info.Classes) || a.size > graph.MaxClassNames {
		return nil //nolint:nilerr // it is among the arrays that were not used
	}
	var names []string
	err = a.each(ctx, func(_ uint64, count int, b []byte) error {
		for i := range count {
			names = append(names, string(a.Append(nil, b, i)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if graph.CheckClassNames(names, n.Info.Classes) == nil {
		n.used, n.Info.ClassNames = append(n.used, a.key), names
	}
	return nil
}

// want makes room for the splits, or returns an error if there are others already.
func want(m *source.Marking, a *array, splits uint64) error {
	if m.Splits != nil {
		if uint64(len(m.Splits)) != splits {
			return a.wrong("it has %d splits and another part has %d: give every part as many", splits, len(m.Splits))
		}
		return nil
	}
	if splits == 0 || splits > graph.MaxSplits {
		return a.wrong("there are %d splits, and 1 to %d can be taken: leave some out", splits, graph.MaxSplits)
	}
	if err := m.Room(splits); err != nil {
		return a.wrong("%d splits of %d vertices: %w: raise {dataset.memory}", splits, m.Vertices, err)
	}
	return nil
}

// indices marks the vertices whose ids an array holds, [k] or [splits, k].
func indices(ctx context.Context, m *source.Marking, a *array, part graph.Mark) error {
	if len(a.Shape) != 1 && len(a.Shape) != 2 || a.Float() || a.DType.Kind == 'b' || !a.rowByRow() {
		return a.wrong("it is %s%s of type %s: save it as a row of vertex ids for each split, as integers", order(a), a.shaped(), a.DType)
	}
	splits, k := uint64(1), a.size
	if len(a.Shape) == 2 {
		splits, k = a.Shape[0], a.Shape[1]
	}
	if err := want(m, a, splits); err != nil {
		return err
	}
	return a.each(ctx, func(first uint64, count int, b []byte) error {
		for i := range count {
			at := first + uint64(i)
			v := a.Int(b, i)
			if v < 0 || v >= int64(m.Vertices) {
				return a.wrong("split %d, entry %d: there is not a vertex %d, as there are %d, numbered from 0: leave it out", at/k, at%k, v, m.Vertices)
			}
			if err := m.Mark(at/k, uint64(v), part); err != nil {
				return a.wrong("%w", err)
			}
		}
		return nil
	})
}

// mask marks the vertices for which an array is true, [vertices] or [vertices,
// splits].
func mask(ctx context.Context, m *source.Marking, a *array, part graph.Mark) error {
	if len(a.Shape) == 0 || len(a.Shape) > 2 || a.Shape[0] != uint64(m.Vertices) {
		return a.wrong("it has the shape %s and there are %d vertices: give a mask true or false for each vertex", a.shaped(), m.Vertices)
	}
	splits := uint64(1)
	if len(a.Shape) == 2 {
		splits = a.Shape[1]
	}
	if err := want(m, a, splits); err != nil {
		return err
	}
	return a.each(ctx, func(first uint64, count int, b []byte) error {
		for i := range count {
			at := first + uint64(i)
			switch a.Number(b, i) {
			case 0:
				continue
			case 1:
			default:
				return a.wrong("it holds numbers other than 0 and 1: save the mask as booleans")
			}
			split, vertex := at%splits, at/splits
			if a.Fortran && len(a.Shape) == 2 {
				split, vertex = at/a.Shape[0], at%a.Shape[0]
			}
			if err := m.Mark(split, vertex, part); err != nil {
				return a.wrong("%w", err)
			}
		}
		return nil
	})
}

func order(a *array) string {
	if a.Fortran {
		return "in Fortran order, "
	}
	return ""
}
