package tabular

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// tables is a graph in tables. Only ids, labels and splits are held in
// memory: edges and features are read from the files each time.
//
// Vertices are named by the edges and by one more table, the first there is of
// features, labels and splits; its vertices may have no edges. In the other tables, a
// row about any further vertex is refused.
type tables struct {
	set     tableSet
	meta    graph.Meta
	ids     *idMap
	memory  source.Memory
	report  func(graph.Progress)
	labels  []int32
	columns graph.Columns
	splits  [][]graph.Mark
	notes   []string
	task    string   // that is asked for
	asked   []string // names of columns of labels
	share   bool     // only this node's parts of the graph
}

var _ graph.Source = (*tables)(nil)

// openSet makes a graph of tables, and closes them if it fails.
func openSet(ctx context.Context, set tableSet, format string, o source.Options) (graph.Source, error) {
	text := false
	for _, t := range set {
		text = text || t != nil && t.about().text
	}
	t, err := loadTables(ctx, set, format, text, o)
	if errors.Is(err, errNotInteger) && !text {
		t, err = loadTables(ctx, set, format, true, o)
	}
	if err != nil {
		return nil, errors.Join(err, set.close())
	}
	return t, nil
}

func loadTables(ctx context.Context, set tableSet, format string, text bool, o source.Options) (*tables, error) {
	t := &tables{set: set, meta: graph.Meta{Format: format}, memory: source.Memory{Limit: o.Memory}, report: o.Report, task: o.Task, asked: o.LabelColumns}
	t.ids = newIDMap(&t.memory, text)
	if err := t.load(ctx); err != nil {
		if errors.Is(err, source.ErrMemory) {
			return nil, fmt.Errorf("the ids, labels and splits of the graph in %s do not fit in %s of memory: allow more, or number the vertices 0, 1, 2 and so on, which needs least", set[edgesTable].about().name, source.Size(o.Memory))
		}
		return nil, err
	}
	return t, nil
}

func (t *tables) load(ctx context.Context) error {
	for _, part := range t.set {
		if part != nil {
			t.notes = append(t.notes, part.about().notes...)
		}
	}
	edges, err := t.collect(ctx, edgesTable)
	if err != nil {
		return err
	}
	t.meta.Edges = edges
	withEdges := t.ids.soFar()
	about := t.set[edgesTable].about()
	t.meta.Weighted, t.meta.EdgeFeatures = about.weighs, about.width
	if about.weighs {
		t.meta.EdgeFeatures--
	}
	rows := uint64(0)
	for kind := featuresTable; kind <= splitsTable; kind++ {
		if t.set[kind] != nil {
			if rows, err = t.collect(ctx, kind); err != nil {
				return err
			}
			if err := t.compare(kind, withEdges, rows); err != nil {
				return err
			}
			break
		}
	}
	if err := t.ids.finish(); err != nil {
		return err
	}
	if t.meta.Vertices = t.ids.len(); t.meta.Vertices == 0 { // another node sent rows without ids
		return t.changed(edgesTable)
	}
	t.notes = append(t.notes, t.ids.note())
	if f := t.set[featuresTable]; f != nil {
		t.meta.Features = f.about().width
		if t.meta.Features > source.MaxDenseFeatures {
			return fmt.Errorf("%s has %d feature columns, and at most %d can be taken: make the features fewer", f.about().name, t.meta.Features, source.MaxDenseFeatures)
		}
		if without := uint64(t.meta.Vertices) - min(rows, uint64(t.meta.Vertices)); without > 0 && t.meta.Features > 0 {
			t.notes = append(t.notes, fmt.Sprintf("%d of %d vertices have no row in %s: their features are zeros.", without, t.meta.Vertices, f.about().name))
		}
	}
	if err := t.loadLabels(ctx); err != nil {
		return err
	}
	return t.loadSplits(ctx)
}

// compare notes the vertices that have no edge. It refuses a table in which none has
// one: then ids are written differently there.
func (t *tables) compare(kind tableKind, withEdges int, rows uint64) error {
	name, only := t.set[kind].about().name, t.ids.soFar()-withEdges
	if only <= 0 {
		return nil
	}
	if withEdges > 0 && rows > 0 && uint64(only) >= rows {
		return fmt.Errorf("%s has no id that occurs in %s: write ids in the same way in both", name, t.set[edgesTable].about().name)
	}
	t.notes = append(t.notes, fmt.Sprintf("Vertices in %s without an edge: %d.", name, only))
	return nil
}

// collect collects all ids of a table, and returns how many rows it has.
func (t *tables) collect(ctx context.Context, kind tableKind) (uint64, error) {
	rows := uint64(0)
	err := t.scan(ctx, kind, scanning{idsOnly: true, anyOrder: t.ids.text == nil, report: t.report}, func(b *rowBatch) error {
		rows += uint64(b.n)
		if kind != edgesTable {
			return t.ids.collect(&b.ids[0])
		}
		if t.ids.text == nil {
			return errors.Join(t.ids.collect(&b.ids[0]), t.ids.collect(&b.ids[1]))
		}
		return t.ids.collectText(&b.ids[0], &b.ids[1])
	})
	if err == nil && rows == 0 {
		err = fmt.Errorf("%s holds no rows: write %s", t.set[kind].about().name, kind.wants())
	}
	return rows, err
}

func (t *tables) scan(ctx context.Context, kind tableKind, how scanning, yield func(*rowBatch) error) error {
	how.text = t.ids.text != nil
	return t.set[kind].scan(ctx, how, func(b *rowBatch) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		return yield(b)
	})
}

// changed is the error of a later pass that reads something else than the first.
func (t *tables) changed(kind tableKind) error {
	return fmt.Errorf("%s was changed while it was read: import it again when nothing writes to it", t.set[kind].about().name)
}

func (t *tables) again(kind tableKind, err error) error {
	if errors.Is(err, errNotInteger) {
		return t.changed(kind)
	}
	return err
}

func (t *tables) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	if t.set[edgesTable] == nil {
		return nil // a share without parts
	}
	var src, dst []uint32
	var weights, features []float32
	seen := uint64(0)
	// What an edge that occurs twice has is added up in the order of the rows.
	err := t.scan(ctx, edgesTable, scanning{anyOrder: t.set[edgesTable].about().width == 0}, func(b *rowBatch) error {
		src, dst = t.ids.number(&b.ids[0], src), t.ids.number(&b.ids[1], dst)
		for i := range src {
			if src[i] == unknownID || dst[i] == unknownID {
				return t.changed(edgesTable)
			}
		}
		if seen += uint64(b.n); seen > t.meta.Edges {
			return t.changed(edgesTable)
		}
		var batch graph.EdgeBatch
		batch, weights, features = t.edgeBatch(b, src, dst, weights, features)
		return yield(batch)
	})
	if err == nil && seen != t.meta.Edges && !t.share {
		return t.changed(edgesTable)
	}
	return t.again(edgesTable, err)
}

func (t *tables) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	if t.set[featuresTable] == nil {
		return nil
	}
	var vertices []uint32
	seen := newSeen(t.meta.Vertices)
	err := t.scan(ctx, featuresTable, scanning{anyOrder: true}, func(b *rowBatch) error {
		vertices = t.ids.number(&b.ids[0], vertices)
		if err := t.once(b, vertices, seen); err != nil {
			return err
		}
		return yield(graph.FeatureBatch{Vertices: vertices, Dense: b.floats})
	})
	return t.again(featuresTable, err)
}

// seenVertices has a bit for each vertex.
type seenVertices []uint64

func newSeen(vertices uint32) seenVertices { return make(seenVertices, (uint64(vertices)+63)/64) }

// once returns an error if a row is about a vertex that was seen before.
func (t *tables) once(b *rowBatch, vertices []uint32, seen seenVertices) error {
	for i, v := range vertices {
		if v == unknownID {
			return t.changed(featuresTable)
		}
		if seen[v/64]&(1<<(v%64)) != 0 {
			return fmt.Errorf("%s: the id %s has a row already: leave one row for each id", t.set[featuresTable].about().at(b.rows[i]), b.ids[0].show(i))
		}
		seen[v/64] |= 1 << (v % 64)
	}
	return nil
}

func (t *tables) Meta() graph.Meta       { return t.meta }
func (t *tables) Labels() []int32        { return t.labels }
func (t *tables) Targets() graph.Columns { return t.columns }
func (t *tables) Splits() [][]graph.Mark { return t.splits }
func (t *tables) IDs() graph.IDs         { return t.ids.ids() }
func (t *tables) Notes() []string        { return t.notes }
func (t *tables) Close() error           { return t.set.close() }
