package tabular

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/intids"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// IsTable reports whether a file is a table by its ending, and returns its name without it.
func IsTable(name string) (stem string, ok bool) {
	ending := tableEnding(name)
	return name[:len(name)-len(ending)], ending != ""
}

// OpenNodes opens a table of nodes without edges: its ids name the vertices, and it may have
// features, labels and splits. held is the memory that it keeps.
func OpenNodes(ctx context.Context, path string, o source.Options) (src graph.Source, held uint64, err error) {
	if err := checkTable(ctx, path, tableEnding(path)); err != nil {
		return nil, 0, err
	}
	var found tableFiles
	found.of[featuresTable], found.nodes = path, true
	set, err := openTableSet(ctx, found, opening{limit: o.Memory, labels: o.LabelColumns})
	if err != nil {
		return nil, 0, err
	}
	about := set[featuresTable].about()
	// Other columns are no ids because they come first: edges would seem to name other nodes.
	if column([]string{about.id}, nodeNames...) < 0 {
		err := fmt.Errorf("%s has no column called id, and its first one is %s: call the column with the ids of the nodes id in the header line", about.name, source.Printable(about.id))
		return nil, 0, errors.Join(err, set.close())
	}
	text := about.text
	t, err := loadNodes(ctx, set, text, o)
	if errors.Is(err, errNotInteger) && !text {
		t, err = loadNodes(ctx, set, true, o)
	}
	if errors.Is(err, source.ErrMemory) {
		err = fmt.Errorf("the ids, labels and splits of %s do not fit in %s of memory: raise {dataset.memory}", files.Base(path), source.Size(o.Memory))
	}
	if err != nil {
		return nil, 0, errors.Join(err, set.close())
	}
	return t, t.memory.Held(), nil
}

func loadNodes(ctx context.Context, set tableSet, text bool, o source.Options) (*tables, error) {
	t := &tables{set: set, memory: source.Memory{Limit: o.Memory}, report: o.Report, task: o.Task, asked: o.LabelColumns}
	t.ids = newIDMap(&t.memory, text)
	for _, part := range t.set {
		if part != nil {
			t.notes = append(t.notes, part.about().notes...)
		}
	}
	rows, err := t.collect(ctx, featuresTable)
	if err != nil {
		return nil, err
	}
	if err := t.ids.finish(); err != nil {
		return nil, err
	}
	if rows > uint64(t.ids.len()) {
		return nil, t.repeated(ctx)
	}
	t.meta.Vertices, t.meta.Features = t.ids.len(), t.set[featuresTable].about().width
	if t.meta.Features > source.MaxDenseFeatures {
		return nil, fmt.Errorf("%s has %d feature columns, and at most %d can be taken: make the features fewer", set[featuresTable].about().name, t.meta.Features, source.MaxDenseFeatures)
	}
	if set[labelsTable] != nil {
		if err := t.loadLabels(ctx); err != nil {
			return nil, err
		}
	}
	return t, t.loadSplits(ctx)
}

// repeated returns the error of the first row whose id an earlier one has.
func (t *tables) repeated(ctx context.Context) error {
	seen := newSeen(t.ids.len())
	var vertices []uint32
	err := t.scan(ctx, featuresTable, scanning{idsOnly: true}, func(b *rowBatch) error {
		vertices = t.ids.number(&b.ids[0], vertices)
		return t.once(b, vertices, seen)
	})
	if err == nil {
		err = t.changed(featuresTable)
	}
	return t.again(featuresTable, err)
}

// Links are edges whose ends are named by two sources, which may be the same.
type Links struct {
	table   table
	of      string // which nodes its ends are
	instead string // what else can be done if one is not
}

// OpenLinks opens a table of edges. Its weights are not read. of says in sentences which nodes are its ends.
func OpenLinks(ctx context.Context, path, of string, memory uint64) (*Links, error) {
	if err := checkTable(ctx, path, tableEnding(path)); err != nil {
		return nil, err
	}
	t, err := openTable(ctx, path, edgesTable, false, opening{limit: memory})
	if err != nil {
		return nil, err
	}
	return &Links{table: t, of: of}, nil
}

// Weighted reports whether there are weights.
func (l *Links) Weighted() bool { return l.table.about().weighs }

// Close closes the table.
func (l *Links) Close() error { return l.table.close() }

// Count returns how many edges there are.
func (l *Links) Count(ctx context.Context, src, dst graph.Source) (edges uint64, err error) {
	return edges, l.Read(ctx, src, dst, func(b graph.EdgeBatch) error {
		edges += uint64(len(b.Src))
		return nil
	})
}

// Read yields the edges, in the numbers that their ends have in the two sources.
func (l *Links) Read(ctx context.Context, src, dst graph.Source, yield func(graph.EdgeBatch) error) error {
	ends := [2]*idMap{numbering(src), numbering(dst)}
	text := l.table.about().text || ends[0].text != nil || ends[1].text != nil
	return l.each(ctx, ends, scanning{text: text}, func(_ *rowBatch, src, dst []uint32) error {
		return yield(graph.EdgeBatch{Src: src, Dst: dst})
	})
}

// each yields rows with the numbers of their ends.
func (l *Links) each(ctx context.Context, ends [2]*idMap, how scanning, yield func(b *rowBatch, src, dst []uint32) error) error {
	var numbers [2][]uint32
	row := uint64(0)
	err := l.table.scan(ctx, how, func(b *rowBatch) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for side, of := range ends {
			numbers[side] = of.lookup(&b.ids[side], how.text, numbers[side])
			for i, v := range numbers[side] {
				if v == unknownID {
					return fmt.Errorf("%s, edge %d: the id %s is not among the nodes%s: add it to their table, or remove the edge%s", l.table.about().name, row+uint64(i)+1, b.ids[side].show(i), l.of, l.instead)
				}
			}
		}
		row += uint64(b.n)
		return yield(b, numbers[0], numbers[1])
	})
	if errors.Is(err, errNotInteger) {
		return fmt.Errorf("%s: an id is not an integer, and all nodes%s have integers: write the ids as in the tables of nodes%s", l.table.about().name, l.of, l.instead)
	}
	return err
}

// numbering returns how a source numbers its ids.
func numbering(src graph.Source) *idMap {
	if t, ok := src.(*tables); ok {
		return t.ids
	}
	return &idMap{ints: intids.Identity(src.Meta().Vertices)}
}

// lookup is number of a column that may be text where the ids are integers.
func (m *idMap) lookup(c *idColumn, text bool, out []uint32) []uint32 {
	if !text || m.text != nil {
		return m.number(c, out)
	}
	out = out[:0]
	for i := range c.ends {
		v, err := strconv.ParseInt(string(c.at(i)), 10, 64)
		switch {
		case err != nil:
			out = append(out, unknownID)
		case m.ints.Identity():
			if uint64(v) >= uint64(m.ints.Len()) { // negative ones too
				v = int64(unknownID)
			}
			out = append(out, uint32(v))
		default:
			out = append(out, m.ints.Number(v))
		}
	}
	m.reorder(out)
	return out
}
