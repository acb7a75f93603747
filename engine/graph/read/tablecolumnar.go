package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A columnTable is a table in a file of columns.
type columnTable struct {
	file   columnFile
	kind   tableKind
	says   tableAbout
	wanted []int // ids first
	list   bool  // features are lists
	cols   []columnAbout
}

var _ table = (*columnTable)(nil)

// newColumnTable finds the columns of a table; it closes the file if it fails.
func newColumnTable(name string, kind tableKind, f columnFile) (*columnTable, error) {
	t := &columnTable{file: f, kind: kind, says: tableAbout{name: name, unit: "row"}}
	if err := t.find(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return t, nil
}

func (t *columnTable) find() error {
	all := t.file.columns()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	if len(names) < 2 {
		return fmt.Errorf("%s has %d columns: write %s", t.says.name, len(names), t.kind.wants())
	}
	p, err := placeColumns(t.says.name, t.kind, names)
	if err != nil {
		return err
	}
	if t.kind == featuresTable {
		t.pickFeatures(&p, all)
	}
	t.wanted = append(append(t.wanted, p.id[:t.kind.ids()]...), p.value...)
	for i, column := range t.wanted {
		c := all[column]
		t.cols = append(t.cols, c)
		if err := t.suits(c, i < t.kind.ids()); err != nil {
			return err
		}
	}
	t.says.width = len(p.value)
	if len(p.ignored) > 0 {
		t.says.notes = append(t.says.notes, fmt.Sprintf("%s: left out: %s.", t.says.name, listed(p.ignored)))
	}
	return t.look()
}

// pandasIndex is the column that pandas adds for row numbers.
const pandasIndex = "__index_level_0__"

// pickFeatures takes one column of lists, if it is called features or stands alone,
// else all columns of numbers.
func (t *columnTable) pickFeatures(p *placed, all []columnAbout) {
	one := -1
	var scalar []int
	for _, i := range p.value {
		switch {
		case all[i].name == pandasIndex:
			p.ignored = append(p.ignored, pandasIndex)
			continue
		case all[i].list && all[i].name == "features":
			one = i
		}
		scalar = append(scalar, i)
	}
	if one < 0 && len(scalar) == 1 && all[scalar[0]].list {
		one = scalar[0]
	}
	p.value = scalar
	if one >= 0 {
		t.list = true
		p.value = []int{one}
		for _, i := range scalar {
			if i != one {
				p.ignored = append(p.ignored, all[i].name)
			}
		}
	}
}

// suits refuses a column whose type can't be taken.
func (t *columnTable) suits(c columnAbout, id bool) error {
	wrong := func(remedy string) error {
		return fmt.Errorf("%s: the column %s has a type that can't be taken: %s", t.says.name, c.name, remedy)
	}
	number := c.kind == intValues || c.kind == floatValues
	switch {
	case id && (c.list || c.kind != intValues && c.kind != textValues):
		return wrong("ids are integers or strings")
	case id:
	case t.kind == featuresTable && (c.list != t.list || !number):
		return wrong("features are numbers, in a column each or as one column of lists")
	case t.kind == edgesTable && (c.list || !number):
		return wrong("weights are numbers")
	case t.kind == labelsTable && (c.list || !number):
		return wrong("labels are integers")
	case t.kind == splitsTable && (c.list || c.kind != textValues):
		return wrong("splits are the words train, val and test")
	}
	return nil
}

// look reads the first rows, to see how wide lists are and whether ids are text.
func (t *columnTable) look() error {
	wanted := t.wanted[:t.kind.ids()]
	if t.list {
		wanted = t.wanted
	}
	r, err := t.file.open(wanted)
	if err != nil {
		return t.broken(err)
	}
	defer r.close()
	rows, columns, err := r.next(headRows)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s holds no rows: write %s", t.says.name, t.kind.wants())
	} else if err != nil {
		return t.broken(err)
	}
	if t.list {
		if t.says.width = columns[1].lengths[0]; t.says.width == 0 {
			return fmt.Errorf("%s: the list of features is empty: give each id as many features", t.says.at(1))
		}
	}
	for i, c := range columns[:t.kind.ids()] {
		for row := range rows {
			if c.kind == textValues {
				_, ok := parseID(c.text.at(row))
				t.says.text = t.says.text || !ok && len(c.text.at(row)) > 0
			} else {
				t.says.text = t.says.text || t.cols[i].unsigned && c.ints[row] < 0
			}
		}
	}
	return nil
}

// errForeign is what is sound and yet not known here; its sentence says what to do.
var errForeign = errors.New("is written in a way that is not known here")

func (t *columnTable) broken(err error) error {
	if errors.Is(err, errForeign) {
		return fmt.Errorf("%s, %w", t.says.name, err)
	}
	return fmt.Errorf("%s can't be read (%w): write it again", t.says.name, err)
}

func (t *columnTable) about() tableAbout { return t.says }
func (t *columnTable) close() error      { return t.file.close() }

func (t *columnTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	wanted := t.wanted
	if how.idsOnly {
		wanted = wanted[:t.kind.ids()]
	}
	r, err := t.file.open(wanted)
	if err != nil {
		return t.broken(err)
	}
	defer r.close()
	var batch rowBatch
	most := max(1, min(1<<15, 1<<20/max(1, t.says.width)))
	done := uint64(0)
	var told time.Time
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rows, columns, err := r.next(most)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return t.broken(err)
		}
		batch.reset()
		batch.n = rows
		if err := t.fill(&batch, columns, done, how); err != nil {
			return err
		}
		if err := yield(&batch); err != nil {
			return err
		}
		done += uint64(rows)
		if now := time.Now(); how.tell != nil && (now.Sub(told) >= 100*time.Millisecond || done == t.file.rows()) {
			told = now
			how.tell(graph.Progress{Stage: "reading " + t.says.name, Done: done, Total: t.file.rows(), Unit: [...]string{"edges", "vertices", "vertices", "vertices"}[t.kind]})
		}
	}
}
