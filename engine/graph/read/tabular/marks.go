package tabular

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// loadClasses reads the table of labels as integers, or, if one of them is a word, all as
// names of classes. With fractions the error of another number need not say where it is.
func (t *tables) loadClasses(ctx context.Context, fractions bool) error {
	n := uint64(t.meta.Vertices)
	if err := t.memory.Grow(0, n*4); err != nil {
		return err
	}
	t.labels = make([]int32, n)
	name := t.set[labelsTable].about().name
	known, err := t.readLabels(ctx, nil, fractions)
	if errors.Is(err, errNotInteger) {
		classes := &source.Classes{Memory: &t.memory}
		if known, err = t.readLabels(ctx, classes, false); err == nil {
			names, note := source.Named(name, classes.Sort(t.labels))
			t.meta.ClassNames, t.notes = names, append(t.notes, note)
		}
	}
	switch {
	case err != nil:
		return t.again(labelsTable, err)
	case known == 0:
		return fmt.Errorf("%s gives no vertex a label: write %s, or remove the file", name, labelsTable.wants())
	case known < n:
		t.notes = append(t.notes, fmt.Sprintf("%d of %d vertices have no label.", n-known, n))
	}
	return nil
}

// readLabels returns how many vertices have a label. classes is nil if they are integers.
func (t *tables) readLabels(ctx context.Context, classes *source.Classes, fractions bool) (known uint64, err error) {
	t.meta.Classes = 0
	for i := range t.labels {
		t.labels[i] = graph.NoLabel
	}
	var vertices []uint32
	err = t.scan(ctx, labelsTable, scanning{words: classes != nil, fractions: fractions, report: t.report}, func(b *rowBatch) error {
		vertices = t.ids.number(&b.ids[0], vertices)
		for i, v := range vertices {
			if v == unknownID {
				return t.unknownVertex(labelsTable, b, i)
			}
			var label int32
			if classes == nil {
				label = b.labels[i]
			} else if label, err = classes.Number(b.words.at(i)); err != nil {
				if errors.Is(err, source.ErrMemory) {
					return err
				}
				return fmt.Errorf("%s: %w", t.set[labelsTable].about().at(b.rows[i]), err)
			}
			if label == graph.NoLabel {
				continue
			}
			if is := t.labels[v]; is == graph.NoLabel {
				known++
			} else if is != label {
				return t.disagree(b, i, is, label, classes)
			}
			t.labels[v] = label
			t.meta.Classes = max(t.meta.Classes, int(label)+1)
		}
		return nil
	})
	return known, err
}

func (t *tables) disagree(b *rowBatch, row int, is, label int32, classes *source.Classes) error {
	here, before := fmt.Sprint(label), fmt.Sprint(is)
	if classes != nil {
		here, before = classes.Quote(label), classes.Quote(is)
	}
	return fmt.Errorf("%s: the id %s has the label %s here and %s in an earlier row: leave one of them", t.set[labelsTable].about().at(b.rows[row]), b.ids[0].show(row), here, before)
}

// loadSplits reads the table of splits, if there is one.
func (t *tables) loadSplits(ctx context.Context) error {
	if t.set[splitsTable] == nil {
		return nil
	}
	n, about := uint64(t.meta.Vertices), t.set[splitsTable].about()
	if err := t.memory.Grow(0, n*uint64(about.width)); err != nil {
		return err
	}
	t.splits = make([][]graph.Mark, about.width)
	for i := range t.splits {
		t.splits[i] = make([]graph.Mark, n)
	}
	var vertices []uint32
	return t.scan(ctx, splitsTable, scanning{report: t.report}, func(b *rowBatch) error {
		vertices = t.ids.number(&b.ids[0], vertices)
		for i, v := range vertices {
			if v == unknownID {
				return t.unknownVertex(splitsTable, b, i)
			}
			for s, mark := range b.marks[i*about.width : (i+1)*about.width] {
				if mark == graph.Unmarked {
					continue
				}
				if is := t.splits[s][v]; is != graph.Unmarked && is != mark {
					return fmt.Errorf("%s: splits overlap, the id %s is in %s here and in %s in an earlier row: leave it in one part", about.at(b.rows[i]), b.ids[0].show(i), source.PartNames[mark], source.PartNames[is])
				}
				t.splits[s][v] = mark
			}
		}
		return nil
	})
}

// unknownVertex refuses a row about a vertex that no table has named.
func (t *tables) unknownVertex(kind tableKind, b *rowBatch, i int) error {
	if t.set[edgesTable] == nil {
		return t.changed(kind) // a table of nodes names the vertices itself
	}
	where := t.set[edgesTable].about().name
	naming := ""
	for other := featuresTable; other < kind; other++ {
		if part := t.set[other]; part != nil {
			naming = part.about().name
			break
		}
	}
	if naming == "" {
		return t.changed(kind) // it names vertices itself
	}
	return fmt.Errorf("%s: %s without vertices, the id %s is neither in %s nor in %s: add it there or remove the row", t.set[kind].about().at(b.rows[i]), kind, b.ids[0].show(i), where, naming)
}
