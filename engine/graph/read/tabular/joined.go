package tabular

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A Part is one of several sources that make a graph together: a path on this machine,
// or, with Far, on another. All parts with the same Node are read one after another,
// and parts of different nodes at the same time.
type Part struct {
	Label string // for sentences, as the user wrote it
	Node  string
	Path  string
	Far   Far // nil: here
	Look  Look
}

// Far reads a part on another machine.
type Far interface {
	// Scan yields encoded batches of rows, as ScanPart does there. An id that is not an
	// integer, where integers are wanted, is the error of IsNotInteger.
	Scan(ctx context.Context, q Query, yield func([]byte) error) error
}

// OpenParts makes one graph of several sources. Their tables of one kind follow one
// another in the order of the parts, as if they were one file.
func OpenParts(ctx context.Context, parts []Part, format string, o source.Options) (graph.Source, error) {
	set, err := joinParts(ctx, parts, format, opening{limit: o.Memory, labels: o.LabelColumns, edges: o.EdgeFeatures})
	if err != nil {
		return nil, errors.Join(err, set.close())
	}
	return openSet(ctx, set, format, o)
}

func joinParts(ctx context.Context, parts []Part, format string, o opening) (set tableSet, err error) {
	var joined [len(set)]*joinedTable
	for _, p := range parts {
		var own tableSet
		if p.Far != nil {
			if own, err = p.farTables(o.labels); err != nil {
				return set, fmt.Errorf("%s: %w", p.Label, err)
			}
		} else {
			files, err := findTables(ctx, p.Path, endingsOf(format))
			if err == nil {
				own, err = openTableSet(ctx, files, o)
			}
			if err != nil {
				return set, fmt.Errorf("%s: %w", p.Label, err)
			}
		}
		for kind, t := range own {
			if t == nil {
				continue
			}
			if joined[kind] == nil {
				joined[kind] = &joinedTable{kind: tableKind(kind)}
				set[kind] = joined[kind]
			}
			joined[kind].add(t, p)
		}
	}
	for _, j := range joined {
		if j != nil {
			if err := j.suit(); err != nil {
				return set, err
			}
		}
	}
	return set, nil
}

// A joinedTable is tables of one kind, one after another. The row numbers in its
// batches begin with the number of the table.
type joinedTable struct {
	kind   tableKind
	tables []table
	parts  []Part
}

var _ table = (*joinedTable)(nil)

func (j *joinedTable) add(t table, p Part) {
	j.tables, j.parts = append(j.tables, t), append(j.parts, p)
}

// suit returns an error unless the tables have the same columns.
func (j *joinedTable) suit() error {
	first := j.tables[0].about()
	for i, t := range j.tables {
		if a := t.about(); a.width != first.width || a.weighs != first.weighs {
			return fmt.Errorf("%s in %s has %d columns of values and %s in %s has %d: write all parts of a table with the same columns",
				a.name, j.parts[i].Label, a.width, first.name, j.parts[0].Label, first.width)
		} else if a.columns != "" && first.columns != "" && a.columns != first.columns {
			return fmt.Errorf("%s in %s has other columns than %s in %s, or in another order: write all parts of a table with the same columns",
				a.name, j.parts[i].Label, first.name, j.parts[0].Label)
		}
	}
	return nil
}

// partShift is where a row's number holds that of its table.
const partShift = 48

func (j *joinedTable) about() tableAbout {
	a := j.tables[0].about()
	if len(j.tables) == 1 {
		a.name = a.name + " in " + j.parts[0].Label
	} else {
		a.name = fmt.Sprintf("the %s of %d sources", j.kind, len(j.tables))
	}
	a.notes = nil
	for i, t := range j.tables {
		own := t.about()
		a.text = a.text || own.text
		for _, note := range own.notes {
			a.notes = append(a.notes, j.parts[i].Label+": "+note)
		}
	}
	a.where = func(row uint64) string {
		part := min(int(row>>partShift), len(j.tables)-1)
		return j.parts[part].Label + ": " + j.tables[part].about().at(row&(1<<partShift-1))
	}
	return a
}

func (j *joinedTable) close() error {
	var all error
	for _, t := range j.tables {
		all = errors.Join(all, t.close())
	}
	return all
}

// scan reads the tables in order, or, where the order of rows changes nothing, those of
// different nodes at once.
func (j *joinedTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	if !how.anyOrder {
		for i := range j.tables {
			if err := j.scanOne(ctx, i, how, yield); err != nil {
				return err
			}
		}
		return nil
	}
	var mu sync.Mutex // held while a batch is yielded
	var failed error  // of yield
	g, during := errgroup.WithContext(ctx)
	report := how.report
	if report != nil {
		how.report = func(p graph.Progress) {
			mu.Lock()
			defer mu.Unlock()
			report(p)
		}
	}
	begun := map[string]bool{}
	for first, p := range j.parts {
		if begun[p.Node] {
			continue
		}
		begun[p.Node] = true
		g.Go(func() error {
			for i := first; i < len(j.parts); i++ {
				if j.parts[i].Node != p.Node {
					continue
				}
				err := j.scanOne(during, i, how, func(b *rowBatch) error {
					mu.Lock()
					defer mu.Unlock()
					if failed == nil {
						failed = yield(b)
					}
					return failed
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return cmp.Or(failed, context.Cause(ctx), err)
}

// scanOne reads one table, whose errors say where it is. Those of yield stay as they are.
func (j *joinedTable) scanOne(ctx context.Context, i int, how scanning, yield func(*rowBatch) error) error {
	var failed error
	err := j.tables[i].scan(ctx, how, func(b *rowBatch) error {
		for row := range b.rows {
			b.rows[row] = b.rows[row]&(1<<partShift-1) | uint64(i)<<partShift
		}
		failed = yield(b)
		return failed
	})
	if err == nil || failed != nil || context.Cause(ctx) != nil {
		return cmp.Or(failed, err)
	}
	return fmt.Errorf("%s: %w", j.parts[i].Label, err)
}
