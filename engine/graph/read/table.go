package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A table is a file of rows that tell of edges or of vertices. Who opened it
// closes it.
type table interface {
	about() tableAbout
	// scan yields the rows in batches that are valid until yield returns. It may be
	// called again and again, one call at a time.
	scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error
	close() error
}

// tableAbout says what a table holds before it is read through.
type tableAbout struct {
	name  string // for sentences
	unit  string // what rows are counted in: line or row
	width int    // features or splits in a row; of edges 1 if there are weights
	text  bool   // ids are seen not to be integers; if false, they may be so still
	notes []string
}

// at begins a sentence on a row.
func (a tableAbout) at(row uint64) string { return fmt.Sprintf("%s, %s %d", a.name, a.unit, row) }

// scanning says what of a table is asked for.
type scanning struct {
	text    bool // ids come as text, else as integers
	idsOnly bool
	tell    func(graph.Progress) // may be nil
}

// errNotInteger ends a scan for integers when an id is something else: then all
// ids of all tables are text.
var errNotInteger = errors.New("an id is no integer")

// A rowBatch is some rows of a table. Which slices are filled depends on the kind
// of table; values lie row after row.
type rowBatch struct {
	n      int
	ids    [2]idColumn // the second is the target of edges
	rows   []uint64    // where the rows are in the file; nil for edges
	floats []float32   // weights or features
	labels []int32
	marks  []graph.Mark
}

func (b *rowBatch) reset() {
	b.n = 0
	b.ids[0].reset()
	b.ids[1].reset()
	b.rows, b.floats, b.labels, b.marks = b.rows[:0], b.floats[:0], b.labels[:0], b.marks[:0]
}

// full says whether a batch is large enough to be handed on.
func (b *rowBatch) full() bool {
	const rows, values, bytes = 1 << 15, 1 << 20, 4 << 20
	return b.n >= rows || len(b.floats) >= values || len(b.marks) >= values || len(b.ids[0].bytes)+len(b.ids[1].bytes) >= bytes
}
