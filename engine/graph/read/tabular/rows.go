package tabular

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Rows is a graph in tables of which a column says of which type each vertex is, or of which
// relation each edge. It numbers ids, and reads labels and splits; what types and relations there
// are, its caller finds out row by row.
//
// A table of features or nodes names all vertices. Without one, the edges do.
type Rows struct {
	*tables
	named bool // by a table of nodes
}

// Open opens tables of a format, csv or parquet: an edge file, or a folder of edges and optionally
// nodes, or features, labels and splits, which may mix the two. Those with a column of types or of
// relations are rows, and all others a source.
//
// In text, fields lie between tabs, semicolons, commas or blanks; quotes are RFC 4180's, and
// lines that begin with # or % are comments. Of edges the columns src, dst and
// weight are taken (or source, from, u and target, to, v), without a header line the
// first, second and third. Features are all columns but id, which is the first if
// none is called so. Labels are id and label, integers or names of classes, or several columns of
// numbers, label_0, label_1 and so on or all but id; empty and nan are missing, and -1 beside classes
// or 0 and 1. Splits
// are id and split, or split_0, split_1 and so on, without a header line each column
// behind the first: train, val (valid, validation) or test, or empty. A table of Parquet may be a
// folder of part files, as Spark writes them.
func Open(ctx context.Context, path, format string, o source.Options) (graph.Source, *Rows, error) {
	found, err := findTables(ctx, path, endingsOf(format))
	if err != nil {
		return nil, nil, err
	}
	found.unused = slices.DeleteFunc(found.unused, func(name string) bool { return slices.Contains(o.Beside, name) })
	set, err := openTableSet(ctx, found, openingOf(o))
	if err != nil {
		return nil, nil, err
	}
	typed := set[featuresTable] != nil && set[featuresTable].about().category != ""
	if name, key := o.Categories(); key == featuresTable.option("") && !typed {
		err = fmt.Errorf("%s names %s, and there is no table of nodes beside the edges: put a file called nodes into the folder with the edges", key, source.Printable(name))
		return nil, nil, errors.Join(err, set.close())
	}
	if !typed && set[edgesTable].about().category == "" {
		src, err := openSet(ctx, set, format, o)
		return src, nil, err
	}
	return nil, &Rows{tables: &tables{set: set, report: o.Report, task: o.Task, asked: o.LabelColumns}, named: set[featuresTable] != nil}, nil
}

// Load numbers the ids. What it holds counts within the options' memory.
func (r *Rows) Load(ctx context.Context, o source.Options) error {
	text := false
	for _, t := range r.set {
		text = text || t != nil && t.about().text
	}
	err := r.load(ctx, text, o)
	if errors.Is(err, errNotInteger) && !text {
		err = r.load(ctx, true, o)
	}
	return err
}

func (r *Rows) load(ctx context.Context, text bool, o source.Options) error {
	t := &tables{set: r.set, memory: source.Memory{Limit: o.Memory}, report: o.Report, task: o.Task, asked: o.LabelColumns}
	t.ids = newIDMap(&t.memory, text)
	r.tables = t
	if !r.named {
		return t.load(ctx)
	}
	for _, part := range t.set {
		if part != nil {
			t.notes = append(t.notes, part.about().notes...)
		}
	}
	if _, err := t.collect(ctx, featuresTable); err != nil {
		return err
	}
	if err := t.ids.finish(); err != nil {
		return err
	}
	t.meta.Vertices = t.ids.len()
	return nil
}

// Memory is what the rows are held in.
func (r *Rows) Memory() *source.Memory { return &r.memory }

// Named reports whether a table of nodes names the vertices, and Typed whether it has their types.
func (r *Rows) Named() bool { return r.named }
func (r *Rows) Typed() bool { return r.named && r.set[featuresTable].about().category != "" }

// Related reports whether edges have relations, and Weighted whether they have weights, which are
// not read.
func (r *Rows) Related() bool  { return r.set[edgesTable].about().category != "" }
func (r *Rows) Weighted() bool { return r.set[edgesTable].about().weighs }

// EdgeTable returns what the table of edges is called.
func (r *Rows) EdgeTable() string { return r.set[edgesTable].about().name }

// Table returns what the table of nodes is called, or else that of edges.
func (r *Rows) Table() string {
	if r.named {
		return r.set[featuresTable].about().name
	}
	return r.set[edgesTable].about().name
}

// Columns returns how many columns of features there are; they may be one of lists, of any length.
func (r *Rows) Columns() (columns int, list bool) {
	if !r.named {
		return 0, false
	}
	about := r.set[featuresTable].about()
	return about.width, about.list
}

// Column names a column of features.
func (r *Rows) Column(i int) string {
	if names := r.set[featuresTable].about().features; i < len(names) {
		return source.Printable(names[i])
	}
	return fmt.Sprint(i + 1)
}

// Order numbers the vertices anew: order has the new number of each.
func (r *Rows) Order(order []uint32) { r.ids.order = order }

// Learn reads labels and splits, whose vertices have their new numbers.
func (r *Rows) Learn(ctx context.Context) error {
	if !r.named {
		return nil // they were read with the ids
	}
	if err := r.loadLabels(ctx); err != nil {
		return err
	}
	return r.loadSplits(ctx)
}

// Nodes are some rows of a table of nodes, valid until they have been yielded.
type Nodes struct {
	Vertices []uint32
	rows     *rowBatch
	about    tableAbout
	types    bool
	ends     []int // of lists
}

// Nodes yields the rows of the table of nodes, with features or without.
func (r *Rows) Nodes(ctx context.Context, features bool, yield func(*Nodes) error) error {
	n := Nodes{about: r.set[featuresTable].about(), types: r.Typed()}
	how := scanning{idsOnly: !features, categories: n.types, gaps: n.types, report: r.report}
	err := r.scan(ctx, featuresTable, how, func(b *rowBatch) error {
		n.rows, n.Vertices, n.ends = b, r.ids.number(&b.ids[0], n.Vertices), n.ends[:0]
		end := 0
		for i, v := range n.Vertices {
			if v == unknownID {
				return r.changed(featuresTable)
			}
			if n.types && n.about.list && features {
				end += b.lengths[i]
				n.ends = append(n.ends, end)
			}
		}
		return yield(&n)
	})
	return r.again(featuresTable, err)
}

// Type returns the type of a row.
func (n *Nodes) Type(i int) []byte { return n.rows.categories.at(i) }

// Features returns the features of a row. NaN is a missing one, and infinity one that is a word.
func (n *Nodes) Features(i int) []float32 {
	if len(n.ends) == 0 {
		return n.rows.floats[i*n.about.width:][:n.about.width]
	}
	from := 0
	if i > 0 {
		from = n.ends[i-1]
	}
	return n.rows.floats[from:n.ends[i]]
}

// At begins a sentence on a row, and ID is its id for one.
func (n *Nodes) At(i int) string { return n.about.at(n.rows.rows[i]) }
func (n *Nodes) ID(i int) string { return n.rows.ids[0].show(i) }

// Links yields the edges. relation returns the relation of one of them, if edges have some.
func (r *Rows) Links(ctx context.Context, yield func(src, dst []uint32, relation func(i int) []byte) error) error {
	l, text := Links{table: r.set[edgesTable], instead: ", or, for a graph without types, give " + source.WithoutTypes}, r.ids.text != nil
	if r.named {
		text = text || l.table.about().text
	}
	how := scanning{text: text, idsOnly: true, categories: r.Related(), report: r.report}
	return l.each(ctx, [2]*idMap{r.ids, r.ids}, how, func(b *rowBatch, src, dst []uint32) error {
		return yield(src, dst, relation(b, how.categories))
	})
}

// relation returns what gives the relation of an edge; "" where there are none.
func relation(b *rowBatch, there bool) func(i int) []byte {
	if !there {
		return func(int) []byte { return nil }
	}
	return b.categories.at
}
