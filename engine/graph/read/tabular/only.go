package tabular

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
)

// IDs are some rows of a table of which only ids are read.
type IDs struct {
	Rows  int
	batch *rowBatch
}

// At returns the id of a row in a column, as text.
func (i IDs) At(row, column int) []byte { return i.batch.ids[column].at(row) }

// ReadIDs reads the ids of a table, as ids of edges are read in any format that can be imported:
// those of the two columns of pairs or, with one, of the only column or the one that a header calls
// id. They are valid until yield
// returns. limit bounds what a Parquet file may hold at once; 0 is no bound.
func ReadIDs(ctx context.Context, path string, columns int, limit uint64, yield func(IDs) error) (err error) {
	if err := files.Check(ctx, path); err != nil {
		return err
	}
	kind := edgesTable
	if columns == 1 {
		kind = idsTable
	}
	t, err := openTable(ctx, path, kind, false, opening{limit: limit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.scan(ctx, scanning{text: true, idsOnly: true}, func(b *rowBatch) error { return yield(IDs{b.n, b}) })
}
