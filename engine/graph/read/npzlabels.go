package read

import (
	"context"
)

// readLabels reads a class for each vertex. NaN and -1 stand for what is missing.
// It returns how many classes there are.
func readLabels(ctx context.Context, a *array, vertices uint32, m *memory) ([]int32, int, error) {
	if len(a.shape) == 2 && a.shape[1] > 1 {
		return nil, 0, a.wrong("it has %d columns, and a vertex has one label: save one column, or numpy.argmax(%s, axis=1) if they are one-hot", a.shape[1], a.key)
	}
	if len(a.shape) == 0 || len(a.shape) > 2 || a.shape[0] != uint64(vertices) || a.size != uint64(vertices) {
		return nil, 0, a.wrong("it has the shape %s and there are %d vertices: give each vertex a label, -1 if it has none", a.shaped(), vertices)
	}
	var labels []int32
	classes := int32(0)
	err := a.each(ctx, func(first uint64, count int, b []byte) error {
		var err error
		if labels, err = enlarge(m, labels, count, 4); err != nil {
			return a.wrong("%w: raise --memory", err)
		}
		for i := range count {
			var label int32
			if a.float() {
				label, err = floatLabel(a.number(b, i))
			} else {
				label, err = intLabel(a.int(b, i))
			}
			if err != nil {
				return a.wrong("vertex %d: %w", first+uint64(i), err)
			}
			labels = append(labels, label)
			classes = max(classes, label+1)
		}
		return nil
	})
	return labels, int(classes), err
}
