package typed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// vertexName is the type of all vertices where no column has types.
const vertexName = "vertex"

// Tables is a graph in a table of nodes with a column of types and a table of edges with a column of
// relations, or with one of the two. It is the graph that a folder with a file for each type and
// relation would be.
type Tables struct {
	Graph
	rows  *tabular.Rows
	own   [][]int // columns of each type in the table of nodes
	links links
}

// OpenCSV and OpenParquet open tables: as a graph with types if they have a column of types or of
// relations, or else as one of one type.
func OpenCSV(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	return openTables(ctx, path, "csv", o)
}

func OpenParquet(ctx context.Context, path string, o source.Options) (graph.Source, error) {
	return openTables(ctx, path, "parquet", o)
}

func openTables(ctx context.Context, path, format string, o source.Options) (graph.Source, error) {
	src, rows, err := tabular.Open(ctx, path, format, o)
	if rows == nil || err != nil {
		return src, err
	}
	t := &Tables{rows: rows}
	if err := t.open(ctx, o); err != nil {
		if errors.Is(err, source.ErrMemory) {
			err = fmt.Errorf("the names, labels and splits of %s do not fit in %s of memory: raise {dataset.memory}", files.Show(path), source.Size(o.Memory))
		}
		return nil, errors.Join(withoutFound(err, o), rows.Close())
	}
	return t, nil
}

// withoutFound has a refusal of a column that was found, and not asked for, say how to go on: the
// graph may be one of no types.
func withoutFound(err error, o source.Options) error {
	of, is := errors.AsType[tabular.CategoryError](err)
	switch {
	case is && of.Relations && o.RelationColumn == "":
		return fmt.Errorf("%w, or give {dataset.relation_column none}", err)
	case is && !of.Relations && o.TypeColumn == "":
		return fmt.Errorf("%w, or give {dataset.type_column none}", err)
	}
	return err
}

func (t *Tables) open(ctx context.Context, o source.Options) error {
	if o.Admit != nil {
		if err := o.Admit(Format); err != nil {
			return err
		}
	}
	if err := t.rows.Load(ctx, o); err != nil {
		return err
	}
	if t.rows.Weighted() && o.TypeColumn == "" && o.RelationColumn == "" {
		// Nobody asked for types, and weights that a graph had before must not vanish.
		return fmt.Errorf("%s has a column of weights, and a column of types or relations was found, whose edges have no weights: give %s to keep the weights, or {dataset.relation_column} or {dataset.type_column} to go without", t.rows.EdgeTable(), source.WithoutTypes)
	}
	t.meta = graph.Meta{Format: Format, Vertices: t.rows.Meta().Vertices, Sparse: true, Weighted: true}
	types, of, err := t.sort(ctx)
	if err != nil {
		return err
	}
	if err := t.place(types, of); err != nil {
		return err
	}
	if err := t.rows.Learn(ctx); err != nil {
		return err
	}
	t.notes = append(t.notes, t.rows.Notes()...)
	if err := t.take(); err != nil {
		return err
	}
	if err := t.count(ctx); err != nil {
		return err
	}
	t.describe()
	return nil
}

// sort finds the types, and the number of that of each vertex: nil if all are of one.
func (t *Tables) sort(ctx context.Context) (types []*columnsOf, of []uint16, err error) {
	memory, n := t.rows.Memory(), t.meta.Vertices
	width, list := t.rows.Columns()
	if !t.rows.Named() {
		return []*columnsOf{{name: vertexName, vertices: n}}, nil, nil
	}
	if err := memory.Grow(0, uint64(n)*2+uint64(width)); err != nil {
		return nil, nil, err
	}
	s := sorter{rows: t.rows, list: list, of: make([]uint16, n), words: make([]bool, width), numbers: make([]bool, width)}
	if err := t.rows.Nodes(ctx, t.rows.Typed() && width > 0, s.see); err != nil {
		return nil, nil, err
	}
	for v, of := range s.of {
		if of == 0 {
			return nil, nil, fmt.Errorf("%s was changed while it was read: import it again when nothing writes to it", t.rows.Table())
		}
		s.of[v]--
	}
	if !t.rows.Typed() {
		s.types[0].all(width)
	}
	if i := slices.IndexFunc(s.types, func(c *columnsOf) bool { return strings.Contains(c.name, ";") }); i >= 0 {
		t.notes = append(t.notes, fmt.Sprintf("%s: several labels with a ; between them are one type, such as %s.", t.rows.Table(), source.Printable(s.types[i].name)))
	}
	if left := s.left(); len(left) > 0 {
		t.notes = append(t.notes, fmt.Sprintf("%s: not taken as features: %s.", t.rows.Table(), source.Listed(left)))
	}
	return s.types, s.of, nil
}

// place numbers the vertices type by type, and names them. Types are in the order in which files
// called so would be listed.
func (t *Tables) place(types []*columnsOf, of []uint16) error {
	order := make([]int, len(types)) // the places of types
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(types[a].name+".", types[b].name+".") })
	first, columns := uint32(0), 0
	next := make([]uint32, len(types)) // number of a type's next vertex
	for _, i := range order {
		c := types[i]
		next[i] = first
		one := &vertexType{Source: &source.Assembled{Info: graph.Meta{Vertices: c.vertices, Features: len(c.columns)}}, name: c.name, first: first, at: columns}
		if columns += one.width(); columns > source.MaxSparseFeatures {
			return fmt.Errorf("the types have %d columns of features up to %s, and at most %d can be taken: make the features fewer", columns, c.name, source.MaxSparseFeatures)
		}
		t.types, t.own = append(t.types, one), append(t.own, c.columns)
		first += c.vertices
	}
	t.meta.Features = columns
	memory, n, ids := t.rows.Memory(), t.meta.Vertices, t.rows.IDs()
	if of == nil {
		return t.named(func(v uint32) uint32 { return v })
	}
	// Beside the new numbers there are, until vertices have names, the old ones.
	if err := memory.Grow(0, uint64(n)*8); err != nil {
		return err
	}
	numbers, was := make([]uint32, n), make([]uint32, n)
	for v, i := range of {
		numbers[v], was[next[i]] = next[i], uint32(v)
		next[i]++
	}
	if ids.Strings != nil {
		for i, one := range t.types {
			vertices := was[one.first:][:types[order[i]].vertices]
			if err := ascend(ids.Strings, vertices, memory); err != nil {
				return err
			}
			for at, v := range vertices {
				numbers[v] = one.first + uint32(at)
			}
		}
	}
	t.rows.Order(numbers)
	err := t.named(func(v uint32) uint32 { return was[v] })
	memory.Free(uint64(n) * (4 + 2))
	return err
}

func (t *Tables) named(was func(v uint32) uint32) error {
	ids := t.rows.IDs()
	t.memory = *t.rows.Memory()
	defer func() { *t.rows.Memory() = t.memory }()
	return t.name(roomFor(ids, t.meta.Vertices), func(to []byte, of *vertexType, i uint32) []byte {
		return appendID(to, ids, was(of.first+i))
	})
}

// ascend sorts the vertices of a type if their ids are all integers, as those of a table of its own
// are.
func ascend(ids *graph.Strings, vertices []uint32, memory *source.Memory) error {
	type numbered struct {
		id     int64
		vertex uint32
	}
	for _, v := range vertices {
		if _, ok := source.ParseID(ids.Bytes[ids.Offsets[v]:ids.Offsets[v+1]]); !ok {
			return nil
		}
	}
	room := uint64(len(vertices)) * 16
	if err := memory.Grow(0, room); err != nil {
		return err
	}
	defer memory.Free(room)
	all := make([]numbered, len(vertices))
	for i, v := range vertices {
		id, _ := source.ParseID(ids.Bytes[ids.Offsets[v]:ids.Offsets[v+1]])
		all[i] = numbered{id, v}
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
	for i, one := range all {
		vertices[i] = one.vertex
	}
	return nil
}

// take takes the labels and splits of the one type that has labels.
func (t *Tables) take() error {
	of := t.rows.Meta()
	labels, targets := t.rows.Labels(), t.rows.Targets()
	var learnt *vertexType
	for _, one := range t.types {
		first, end := int(one.first), int(one.first)+int(one.Meta().Vertices)
		if !slices.ContainsFunc(part(labels, first, end), func(l int32) bool { return l != graph.NoLabel }) &&
			!slices.ContainsFunc(part(targets.YesOrNo, first*of.Classes, end*of.Classes), func(x uint8) bool { return x != graph.Missing }) &&
			!slices.ContainsFunc(part(targets.Numbers, first*of.Classes, end*of.Classes), func(x float32) bool { return !math.IsNaN(float64(x)) }) {
			continue
		}
		if learnt != nil {
			return fmt.Errorf("%s: vertices of the types %s and %s both have labels, and those of one type are learnt: leave the labels of the other empty, or, for a graph without types, give %s", t.rows.Table(), learnt.name, one.name, source.WithoutTypes)
		}
		learnt = one
	}
	if learnt == nil {
		t.unlearnt(t.rows.Splits())
		return nil
	}
	t.meta.Classes, t.meta.Targets, t.meta.ClassNames = of.Classes, of.Targets, of.ClassNames
	t.labels, t.columns, t.splits = labels, targets, t.rows.Splits()
	others := 0
	for _, marks := range t.splits {
		for v := range marks {
			if (v < int(learnt.first) || v >= int(learnt.first)+int(learnt.Meta().Vertices)) && marks[v] != graph.Unmarked {
				marks[v] = graph.Unmarked
				others++
			}
		}
	}
	if others > 0 {
		t.notes = append(t.notes, fmt.Sprintf("Splits are those of %s, whose vertices have labels: %d marks of other types are left out.", learnt.name, others))
	}
	return nil
}

// part returns some of a slice, and nothing of none.
func part[T any](all []T, first, end int) []T {
	if all == nil {
		return nil
	}
	return all[first:end]
}

// Close closes the tables.
func (t *Tables) Close() error { return t.rows.Close() }

// Features yields the rows in the order of the table.
func (t *Tables) Features(ctx context.Context, yield func(graph.FeatureBatch) error) error {
	var r rows
	full := false
	for _, one := range t.types {
		if full = full || !one.bare(); one.bare() {
			if err := r.ones(ctx, one, yield); err != nil {
				return err
			}
		}
	}
	if !full {
		return nil
	}
	changed := fmt.Errorf("%s was changed while it was read: import it again when nothing writes to it", t.rows.Table())
	_, list := t.rows.Columns()
	seen := make([]uint64, (uint64(t.meta.Vertices)+63)/64)
	return t.rows.Nodes(ctx, true, func(n *tabular.Nodes) error {
		b := r.begin()
		for i, v := range n.Vertices {
			at := t.typeOf(v)
			one, columns, row := t.types[at], t.own[at], n.Features(i)
			if seen[v/64]&(1<<(v%64)) != 0 || list && len(row) != len(columns) {
				return changed
			}
			seen[v/64] |= 1 << (v % 64)
			if one.bare() {
				continue
			}
			b.Vertices = append(b.Vertices, v)
			for c, column := range columns {
				x := row[column]
				if x-x != 0 {
					return changed
				}
				if x != 0 {
					b.Indices, b.Values = append(b.Indices, uint32(one.at+c)), append(b.Values, x)
				}
			}
			b.Indptr = append(b.Indptr, int64(len(b.Indices)))
		}
		return yield(*b)
	})
}

// typeOf returns the place of the type of a vertex.
func (t *Tables) typeOf(v uint32) int {
	at, _ := slices.BinarySearchFunc(t.types, v, func(one *vertexType, v uint32) int {
		if one.first <= v {
			return -1
		}
		return 1
	})
	return at - 1
}

// links finds the number of the relation of an edge.
type links struct {
	names   map[string]int32
	numbers map[link]int32
	last    []byte // the name that was looked up last, and its number
	number  int32
}

// link is the name of a relation, by its number, and the types that it leads between.
type link struct{ name, source, target int32 }

// name returns the number of a name, a new one if need be.
func (l *links) name(name []byte) int32 {
	if l.names != nil && bytes.Equal(name, l.last) {
		return l.number
	}
	number, known := l.names[string(name)]
	if !known {
		if l.names == nil {
			l.names = map[string]int32{}
		}
		number = int32(len(l.names))
		l.names[string(name)] = number
	}
	l.last, l.number = append(l.last[:0], name...), number
	return number
}

// count finds the relations, and how many edges each has.
func (t *Tables) count(ctx context.Context) error {
	if t.rows.Weighted() {
		t.notes = append(t.notes, "Weights are not taken, as edges of a graph with types have a relation only: give "+source.WithoutTypes+" for a graph with weights.")
	}
	l := &t.links
	l.numbers = map[link]int32{}
	var found []link
	var counts []uint64
	err := t.rows.Links(ctx, func(src, dst []uint32, relation func(i int) []byte) error {
		for i := range src {
			is := t.link(src[i], dst[i], i, relation)
			number, known := l.numbers[is]
			if !known {
				if err := graph.CheckTypeName(string(relation(i))); err != nil && t.rows.Related() {
					return tabular.NoCategory(true, "%s, edge %d: %w", t.rows.EdgeTable(), t.meta.Edges+uint64(i)+1, err)
				}
				if number = int32(len(found)); number == graph.MaxRelations/2 {
					return tabular.NoCategory(t.rows.Related(), "%s, edge %d: edges have more than %d relations between types, which are the most that a graph may have: leave some out", t.rows.EdgeTable(), t.meta.Edges+uint64(i)+1, number)
				}
				l.numbers[is] = number
				found, counts = append(found, is), append(counts, 0)
			}
			counts[number]++
		}
		t.meta.Edges += uint64(len(src))
		return nil
	})
	if err != nil {
		return err
	}
	if t.meta.Edges == 0 || t.meta.Edges > 1<<47 {
		return fmt.Errorf("there are %d edges, and there may be 1 to %d: check the table of edges", t.meta.Edges, uint64(1)<<47)
	}
	names := make([]string, len(l.names))
	for name, number := range l.names {
		names[number] = name
	}
	for number, is := range found {
		r := &relation{source: t.types[is.source], target: t.types[is.target], edges: counts[number]}
		if r.name = names[is.name]; !t.rows.Related() {
			r.name = r.source.name + "-" + r.target.name
			if err := graph.CheckTypeName("rev-" + r.name); err != nil { // which is that of edges back
				return fmt.Errorf("%s: the name of a relation between the types %.40q and %.40q is longer than the %d bytes that it may have: shorten the two, or name a column of relations with {dataset.relation_column}", t.rows.EdgeTable(), r.source.name, r.target.name, graph.MaxTypeName-len("rev-"))
			}
		}
		t.relations = append(t.relations, r)
	}
	// As files called so would be listed.
	order := make([]int, len(found))
	for i := range order {
		order[i] = i
	}
	called := func(i int) string { return t.relations[i].said().String() + "." }
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(called(a), called(b)) })
	sorted := make([]*relation, len(order))
	for at, i := range order {
		sorted[at], l.numbers[found[i]] = t.relations[i], int32(at)
	}
	t.relations = sorted
	return nil
}

func (t *Tables) link(src, dst uint32, i int, relation func(i int) []byte) link {
	is := link{source: int32(t.typeOf(src)), target: int32(t.typeOf(dst))}
	is.name = t.links.name(relation(i))
	return is
}

// Edges yields the edges in the order of the table, their relations as their weights, and after each
// batch the edges back, if there are some.
func (t *Tables) Edges(ctx context.Context, yield func(graph.EdgeBatch) error) error {
	changed := fmt.Errorf("the edges of %s were changed while they were read: import them again when nothing writes to them", t.rows.Table())
	back := make([]float32, len(t.relations)) // of each relation, that of edges back
	reverse, all := len(t.relations), uint64(0)
	for i, r := range t.relations {
		all += r.edges
		if back[i] = float32(i); r.source != r.target {
			back[i] = float32(reverse)
			reverse++
		}
	}
	var relations, reversed []float32
	seen := uint64(0)
	err := t.rows.Links(ctx, func(src, dst []uint32, relation func(i int) []byte) error {
		relations, reversed = relations[:0], reversed[:0]
		if seen += uint64(len(src)); seen > all {
			return changed
		}
		for i := range src {
			number, known := t.links.numbers[t.link(src[i], dst[i], i, relation)]
			if !known {
				return changed
			}
			relations, reversed = append(relations, float32(number)), append(reversed, back[number])
		}
		if err := yield(graph.EdgeBatch{Src: src, Dst: dst, Weights: relations}); err != nil || !t.mirrored {
			return err
		}
		return yield(graph.EdgeBatch{Src: dst, Dst: src, Weights: reversed})
	})
	if err == nil && seen != all {
		return changed
	}
	return err
}
