package read

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// loadLabels reads the table of labels, if there is one.
func (t *tables) loadLabels(ctx context.Context) error {
	if t.set[labelsTable] == nil {
		return nil
	}
	n := uint64(t.meta.Vertices)
	if err := t.memory.grow(0, n*4); err != nil {
		return err
	}
	t.labels = make([]int32, n)
	for i := range t.labels {
		t.labels[i] = graph.NoLabel
	}
	var vertices []uint32
	rows, known := 0, uint64(0)
	err := t.scan(ctx, labelsTable, scanning{tell: t.tell}, func(b *rowBatch) error {
		rows += b.n
		vertices = t.ids.number(&b.ids[0], vertices)
		for i, v := range vertices {
			if v == unknownID {
				return t.stranger(labelsTable, b, i)
			}
			label := b.labels[i]
			if label == graph.NoLabel {
				continue
			}
			if is := t.labels[v]; is == graph.NoLabel {
				known++
			} else if is != label {
				return fmt.Errorf("%s: the id %s has the label %d here and %d in an earlier row: leave one of them", t.set[labelsTable].about().at(b.rows[i]), b.ids[0].show(i), label, is)
			}
			t.labels[v] = label
			t.meta.Classes = max(t.meta.Classes, int(label)+1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if known == 0 {
		return fmt.Errorf("%s gives no vertex a label: write %s, or remove the file", t.set[labelsTable].about().name, labelsTable.wants())
	}
	if known < n {
		t.notes = append(t.notes, fmt.Sprintf("%d of %d vertices have no label.", n-known, n))
	}
	return nil
}

// loadSplits reads the table of splits, if there is one.
func (t *tables) loadSplits(ctx context.Context) error {
	if t.set[splitsTable] == nil {
		return nil
	}
	n, about := uint64(t.meta.Vertices), t.set[splitsTable].about()
	if err := t.memory.grow(0, n*uint64(about.width)); err != nil {
		return err
	}
	t.splits = make([][]graph.Mark, about.width)
	for i := range t.splits {
		t.splits[i] = make([]graph.Mark, n)
	}
	var vertices []uint32
	return t.scan(ctx, splitsTable, scanning{tell: t.tell}, func(b *rowBatch) error {
		vertices = t.ids.number(&b.ids[0], vertices)
		for i, v := range vertices {
			if v == unknownID {
				return t.stranger(splitsTable, b, i)
			}
			for s, mark := range b.marks[i*about.width : (i+1)*about.width] {
				if mark == graph.Unmarked {
					continue
				}
				if is := t.splits[s][v]; is != graph.Unmarked && is != mark {
					return fmt.Errorf("%s: splits overlap, the id %s is in %s here and in %s in an earlier row: leave it in one part", about.at(b.rows[i]), b.ids[0].show(i), markNames[mark], markNames[is])
				}
				t.splits[s][v] = mark
			}
		}
		return nil
	})
}

var markNames = [...]string{graph.Unmarked: "none", graph.Train: "train", graph.Validation: "val", graph.Test: "test"}

// stranger refuses a row about a vertex that no table has named.
func (t *tables) stranger(kind tableKind, b *rowBatch, i int) error {
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
