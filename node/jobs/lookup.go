package jobs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/hopmesh/hopmesh/engine/graph/read/files"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
	"github.com/hopmesh/hopmesh/engine/graph/read/tabular"
)

// A lookup finds the vertices that a file names. Many ids are looked up together: they are
// sorted, and compared with the names of all vertices in order, so that memory depends on
// neither.
type lookup struct {
	order   *order
	name    string // of the file, for sentences
	columns int    // ids in each row
	places  bool   // places in the order are kept, and not vertices

	before  int // ids that were looked up before
	text    []byte
	ends    []int // of ids in text
	numbers []int64
	by      []int32 // ids in ascending order
	found   []uint32

	file *os.File // what was found, of all ids
}

// Bounds of what is looked up together. Tests lower the first.
var lookedUp = 1 << 17

const lookedUpText = 4 << 20

// lookupMemory is what a lookup takes, with what reading the file does.
const lookupMemory = 32 << 20

// noVertex is found where an id is that of no vertex.
const noVertex = ^uint32(0)

// errAllFound ends a walk over all vertices.
var errAllFound = errors.New("all ids were found")

// look finds the vertices of a file, whose rows have that many ids each. It returns a file with
// their numbers, row after row, or with their places in the order, and how many rows there are.
func (o *order) look(ctx context.Context, path string, columns int, places bool, memory uint64, folder string) (file *os.File, rows int, err error) {
	l := &lookup{order: o, name: files.Base(path), columns: columns, places: places}
	if l.file, err = unnamed(folder); err != nil {
		return nil, 0, fmt.Errorf("make room for what is looked up: %w", err)
	}
	err = tabular.ReadIDs(ctx, path, columns, memory, func(ids tabular.IDs) error {
		for row := range ids.Rows {
			for column := range columns {
				l.text = append(l.text, ids.At(row, column)...)
				l.ends = append(l.ends, len(l.text))
			}
			if len(l.ends) >= lookedUp || len(l.text) >= lookedUpText {
				if err := l.find(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		err = l.find(ctx)
	}
	if err != nil {
		return nil, 0, errors.Join(err, l.file.Close())
	}
	return l.file, l.before / columns, nil
}

// id returns the i-th id as text.
func (l *lookup) id(i int32) []byte {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	return l.text[from:l.ends[i]]
}

// find looks up the ids so far, and forgets them.
func (l *lookup) find(ctx context.Context) error {
	l.by, l.found, l.numbers = l.by[:0], l.found[:0], l.numbers[:0]
	for i := range int32(len(l.ends)) {
		l.found = append(l.found, noVertex)
		if !l.order.names {
			number, is := source.ParseID(l.id(i))
			l.numbers = append(l.numbers, number)
			if !is {
				continue // no vertex is called so
			}
		}
		l.by = append(l.by, i)
	}
	if l.order.names {
		slices.SortFunc(l.by, func(a, b int32) int { return bytes.Compare(l.id(a), l.id(b)) })
	} else {
		slices.SortFunc(l.by, func(a, b int32) int { return cmp.Compare(l.numbers[a], l.numbers[b]) })
	}
	if err := l.walk(ctx); err != nil {
		return err
	}
	if i := slices.Index(l.found, noVertex); i >= 0 {
		what := "vertex"
		if l.columns > 1 {
			what = "pair"
		}
		return fmt.Errorf("%s: %s %d has the id %s, which no vertex of the dataset has: give the ids of its source", l.name, what, (l.before+i)/l.columns+1, source.Shorten(l.id(int32(i))))
	}
	if _, err := l.file.WriteAt(bytesOf(l.found), 4*int64(l.before)); err != nil {
		return fmt.Errorf("keep the vertices of %s: %w: free some space in the data directory", l.name, err)
	}
	l.before += len(l.ends)
	l.text, l.ends = l.text[:0], l.ends[:0]
	return nil
}

// walk compares the sorted ids with all names.
func (l *lookup) walk(ctx context.Context) error {
	rest, place := l.by, uint32(0)
	err := l.order.each(func(vertices []uint32) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, v := range vertices {
			for len(rest) > 0 {
				c := l.compare(rest[0], v)
				if c > 0 {
					break
				}
				if c == 0 {
					if l.found[rest[0]] = v; l.places {
						l.found[rest[0]] = place
					}
				}
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return errAllFound
			}
			place++
		}
		return nil
	})
	if errors.Is(err, errAllFound) {
		return nil
	}
	return err
}

// compare compares an id with a vertex's.
func (l *lookup) compare(id int32, v uint32) int {
	if l.order.names {
		return bytes.Compare(l.id(id), l.order.name(v))
	}
	return cmp.Compare(l.numbers[id], l.order.number(v))
}
