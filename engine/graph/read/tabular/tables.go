// Package tabular reads graphs that lie in tables: edges and optionally features,
// labels and splits, as CSV (with any delimiter, packed by gzip or not), Parquet or
// Arrow, one format a table. It also numbers the vertices, whose ids may be any
// integers or text.
//
// Only ids, labels and splits are held in memory. Edges and features are read from the
// files each time.
package tabular

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/columnar"
	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A table is a file whose rows describe edges or vertices. The opener closes it.
type table interface {
	about() tableAbout
	// scan yields the rows in batches that are valid until yield returns. It may be
	// called again and again, one call at a time.
	scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error
	close() error
}

// tableAbout describes a table before it is read.
type tableAbout struct {
	name   string // for sentences
	unit   string // what rows are counted in: line or row
	width  int    // features, labels or splits in a row; of edges their weight, and their features
	weighs bool   // the first of an edge is its weight
	text   bool   // the first rows have ids that are not integers; later ones may, too
	// columns distinguishes the names of several columns of features or labels, in order; "": they
	// have none, or are few.
	columns string
	id      string   // what a header calls the column of ids of nodes
	labels  []string // names of the columns of labels; nil: they have none
	// category is the column of types or relations, "" without one. Beside types there are the
	// names of the columns of features, or list, if they are in one column.
	category string
	features []string
	list     bool
	notes    []string
	where    func(row uint64) string // what at returns, of a table made of several
}

// at begins a sentence on a row.
func (a tableAbout) at(row uint64) string {
	if a.where != nil {
		return a.where(row)
	}
	return fmt.Sprintf("%s, %s %d", a.name, a.unit, row)
}

// scanning says which part of a table to read, and how.
type scanning struct {
	text    bool // ids come as text, else as integers
	words   bool // labels come as text, else as integers
	targets bool // labels come as numbers, NaN where one is missing
	// fractions lets a scan for classes end with ErrFraction, without its place.
	fractions bool
	idsOnly   bool
	// categories come beside ids; gaps lets features be missing, as NaN, or words, as infinity, and
	// lists of them have any length.
	categories, gaps bool
	// anyOrder lets tables made of several yield their rows in an order of their own.
	anyOrder bool
	report   func(graph.Progress) // may be nil
}

// errNotInteger ends a scan for integers at an id that is something else, or at a label
// that is a word. Then the ids of all tables are text, or all labels are words.
var errNotInteger = errors.New("an id or a label is not an integer")

// A rowBatch is some rows of a table. Which slices are filled depends on the kind
// of table; values lie row after row.
type rowBatch struct {
	n      int
	ids    [2]idColumn // the second is the target of edges
	rows   []uint64    // where the rows are in the file; nil for edges
	floats []float32   // weights, features or targets
	labels []int32
	words  idColumn // labels as text
	marks  []graph.Mark

	categories idColumn // types or relations
	lengths    []int    // of lists of features
}

func (b *rowBatch) reset() {
	b.n = 0
	b.ids[0].reset()
	b.ids[1].reset()
	b.words.reset()
	b.categories.reset()
	b.lengths = b.lengths[:0]
	b.rows, b.floats, b.labels, b.marks = b.rows[:0], b.floats[:0], b.labels[:0], b.marks[:0]
}

// full reports whether a batch is large enough to be yielded.
func (b *rowBatch) full() bool {
	const rows, values, bytes = 1 << 15, 1 << 20, 4 << 20
	return b.n >= rows || len(b.floats) >= values || len(b.marks) >= values || len(b.ids[0].bytes)+len(b.ids[1].bytes)+len(b.words.bytes)+len(b.categories.bytes) >= bytes
}

// The endings of tables' files.
var (
	CSVFiles     = []string{".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"}
	ParquetFiles = []string{".parquet", ".arrow", ".feather"}
)

func endingsOf(format string) []string {
	if format == "parquet" {
		return ParquetFiles
	}
	return CSVFiles
}

// tableEnding returns the ending of a table's file name, or nothing.
func tableEnding(path string) string {
	lower := strings.ToLower(path)
	for _, endings := range [][]string{CSVFiles, ParquetFiles} {
		for _, e := range endings {
			if strings.HasSuffix(lower, e) {
				return e
			}
		}
	}
	return ""
}

// tableFiles are the files of a source.
type tableFiles struct {
	of     [splitsTable + 1]string
	nodes  bool     // features, labels and splits may all be columns of the file of features
	unused []string // names of files that are no table
}

// stems are the names of tables' files without their endings.
var stems = map[string]tableKind{
	"edges": edgesTable, "edge": edgesTable, "edgelist": edgesTable, "edge_list": edgesTable, "links": edgesTable,
	"features": featuresTable, "nodes": featuresTable, "node": featuresTable, "vertices": featuresTable, "vertex": featuresTable,
	"labels": labelsTable, "splits": splitsTable,
}

// IsEdges reports whether a file's name without its ending is that of a table of edges.
func IsEdges(stem string) bool {
	kind, known := stems[strings.ToLower(stem)]
	return known && kind == edgesTable
}

// findTables returns the file of each kind of table that a source has. A folder may
// mix formats. Files that are not named as a table is are left out.
func findTables(ctx context.Context, path string, endings []string) (found tableFiles, err error) {
	what, err := files.Look(ctx, path)
	if err != nil {
		return found, err
	}
	if what != files.Folder {
		if what != files.Regular {
			return found, fmt.Errorf("%s is not a regular file: name an edge file, or a folder with one", path)
		}
		found.of[edgesTable] = path
		return found, nil
	}
	all, err := files.List(ctx, path)
	if err != nil {
		return found, err
	}
	parts := false
	for _, name := range all {
		ending := tableEnding(name)
		kind, known := stems[strings.ToLower(name[:len(name)-len(ending)])]
		if ending == "" || !known {
			parts = parts || columnar.IsPart(name)
			if !columnar.IsPart(name) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_") {
				found.unused = append(found.unused, name)
			}
			continue
		}
		if other := found.of[kind]; other != "" {
			return found, fmt.Errorf("%s holds both %s and %s: leave one of them", files.Show(path), files.Base(other), name)
		}
		found.of[kind] = files.Join(path, name)
		if err := checkTable(ctx, found.of[kind], ending); err != nil {
			return found, err
		}
		if kind == featuresTable {
			found.nodes = !strings.HasPrefix(strings.ToLower(name), "features")
		}
	}
	if found.of[edgesTable] == "" && parts {
		found.of[edgesTable] = path
	}
	if found.of[edgesTable] == "" {
		return found, fmt.Errorf("%s holds no edges: put a file edges%s there, or name the edge file itself", files.Show(path), endings[0])
	}
	return found, nil
}

// checkTable returns an error unless a file can be read, or is a folder of part files. A
// link may lead to a pipe, which would block the reader forever.
func checkTable(ctx context.Context, file, ending string) error {
	what, err := files.Look(ctx, file)
	shown := files.Show(file)
	switch {
	case err != nil:
		return fmt.Errorf("look at %s: %w", shown, err)
	case what == files.Regular:
		return nil
	case what != files.Folder || ending != ".parquet":
		return fmt.Errorf("%s is not a regular file: put the table itself there", shown)
	}
	parts, err := columnar.PartsIn(ctx, file)
	if err == nil && len(parts) == 0 {
		err = fmt.Errorf("%s is a folder without part files: put part-*.parquet files there, or the table itself in its place", shown)
	}
	return err
}

// note names the files that are not read; it may be empty.
func (f *tableFiles) note() string {
	if len(f.unused) == 0 {
		return ""
	}
	return fmt.Sprintf("Not read, since the names are none of edges, nodes, features, labels, splits, edges_valid, edges_test, negatives_valid and negatives_test: %s.", source.Listed(f.unused))
}

// file returns where a kind of table lies, and whether it is columns of a table of nodes.
func (f *tableFiles) file(kind tableKind) (path string, nodes bool) {
	if kind != edgesTable && f.nodes && (f.of[kind] == "" || kind == featuresTable) {
		return f.of[featuresTable], true
	}
	return f.of[kind], false
}

// errNoColumns is the error of opening a kind of table that a table of nodes has no
// columns of.
var errNoColumns = errors.New("no columns of this kind")

// opening says how tables are opened.
type opening struct {
	limit  uint64   // bytes that one may hold; 0: no bound
	labels []string // names of the columns of labels; none: those that are called so
	edges  []string // and of those of features of edges
	// How types of vertices and relations of edges are found.
	types, relations categoryColumn
}

func openingOf(o source.Options) opening {
	look := len(o.EdgeFeatures) == 0 // a graph with types has none
	return opening{limit: o.Memory, labels: o.LabelColumns, edges: o.EdgeFeatures, types: lookFor(o.TypeColumn, look), relations: lookFor(o.RelationColumn, look)}
}

// category says how the column of categories of a table is found.
func (o *opening) category(kind tableKind, nodes bool) (c categoryColumn) {
	switch {
	case kind == edgesTable:
		return o.relations
	case nodes:
		return o.types
	}
	return c
}

// asked returns the names of the columns that are asked for of a table.
func (o *opening) asked(kind tableKind) []string {
	if kind == edgesTable {
		return o.edges
	}
	return o.labels
}

// openTable opens a file by its ending. Without a known ending it is read as text.
func openTable(ctx context.Context, path string, kind tableKind, nodes bool, o opening) (table, error) {
	ending := tableEnding(files.Base(path))
	if what, err := files.Look(ctx, path); err == nil && what == files.Folder {
		ending = ".parquet"
	}
	var f columnar.File
	var err error
	switch ending {
	case ".parquet":
		f, err = columnar.OpenParquet(ctx, path, o.limit)
	case ".arrow", ".feather":
		f, err = columnar.OpenArrow(ctx, path)
	default:
		return openCSVTable(ctx, path, kind, nodes, o.asked(kind), o.category(kind, nodes))
	}
	if err != nil {
		return nil, err
	}
	return newColumnTable(files.Base(path), kind, nodes, o.asked(kind), o.category(kind, nodes), f)
}

// tableSet holds the tables of a source; nil where there is none.
type tableSet [splitsTable + 1]table

func openTableSet(ctx context.Context, found tableFiles, o opening) (set tableSet, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, set.close())
		}
	}()
	for kind := edgesTable; kind <= splitsTable; kind++ {
		path, nodes := found.file(kind)
		if path == "" {
			continue
		}
		t, err := openTable(ctx, path, kind, nodes, o)
		switch {
		case errors.Is(err, errNoColumns):
			continue
		case errors.Is(err, fs.ErrPermission):
			return set, fmt.Errorf("%s may not be read by the daemon (%w): give the user that it runs as the right to read it", path, fs.ErrPermission)
		case err != nil:
			return set, err
		}
		if note := found.note(); kind == edgesTable && note != "" {
			t = noted{t, note}
		}
		set[kind] = t
	}
	for _, kind := range []tableKind{labelsTable, splitsTable} {
		if found.nodes && found.of[kind] != "" {
			if t, err := openTable(ctx, found.of[featuresTable], kind, true, o); err == nil {
				return set, errors.Join(fmt.Errorf("%s has %s and there is %s: leave one of them", files.Base(found.of[featuresTable]), kind, files.Base(found.of[kind])), t.close())
			}
		}
	}
	return set, nil
}

// noted is a table with one more note.
type noted struct {
	table
	note string
}

func (n noted) about() tableAbout {
	a := n.table.about()
	a.notes = append(slices.Clone(a.notes), n.note)
	return a
}

func (s *tableSet) close() error {
	var all error
	for _, t := range s {
		if t != nil {
			all = errors.Join(all, t.close())
		}
	}
	return all
}
