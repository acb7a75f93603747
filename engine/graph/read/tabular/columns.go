package tabular

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/columnar"
	"github.com/hopmesh/hopmesh/engine/graph/read/records"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A columnTable is a table in a file of columns.
type columnTable struct {
	file   columnar.File
	kind   tableKind
	info   tableAbout
	wanted []int // ids first
	list   bool  // features are lists
	nodes  bool
	asked  []string // names of columns of labels
	says   categoryColumn
	column int      // of categories, in the file
	masks  []string // names of the columns, if they are masks
	cols   []columnar.About
}

var _ table = (*columnTable)(nil)

// newColumnTable finds the columns of a table; it closes the file if it fails.
func newColumnTable(name string, kind tableKind, nodes bool, labels []string, says categoryColumn, f columnar.File) (*columnTable, error) {
	t := &columnTable{file: f, kind: kind, nodes: nodes, asked: labels, says: says, info: tableAbout{name: name, unit: "row"}}
	if err := t.find(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

func (t *columnTable) find() error {
	all := t.file.Columns()
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	if len(names) == 0 || len(names) < 2 && !t.nodes && t.kind != idsTable {
		return fmt.Errorf("%s has %d columns: write %s", t.info.name, len(names), t.kind.wants())
	}
	p, err := t.place(all)
	if err == nil && t.nodes && len(p.value) == 0 && t.kind != featuresTable {
		err = errNoColumns
	}
	if err != nil {
		return err
	}
	if t.kind == featuresTable {
		t.pickFeatures(&p, all)
	}
	t.info.width, t.info.weighs = len(p.value), p.weighs
	if p.masks {
		t.info.width, t.masks = 1, namesOf(names, p.value)
	}
	t.info.columns, t.info.labels = digestOf(t.kind, names, p), labelsOf(t.kind, names, p)
	t.wanted = append(append(t.wanted, p.id[:t.kind.ids()]...), p.value...)
	if t.column = p.category; p.category >= 0 {
		t.info.category, t.info.features, t.info.list = names[p.category], namesOf(names, p.value), t.list
	}
	for i, column := range t.wanted {
		c := all[column]
		t.cols = append(t.cols, c)
		if err := t.suits(c, i < t.kind.ids()); err != nil {
			return err
		}
	}
	if t.nodes {
		t.info.id = names[p.id[0]]
		t.info.notes = nodeNotes(t.info.name, t.kind, names, p)
	} else if t.kind == labelsTable && len(p.value) > 1 {
		t.info.notes = append(t.info.notes, fmt.Sprintf("%s: labels are in the columns %s.", t.info.name, source.Listed(t.info.labels)))
	}
	t.info.notes = append(t.info.notes, categoryNotes(t.info.name, t.kind, t.info.category, p.hint)...)
	if !t.nodes && len(p.ignored) > 0 {
		t.info.notes = append(t.info.notes, fmt.Sprintf("%s: left out: %s.", t.info.name, source.Listed(p.ignored)))
	}
	return t.look()
}

func (t *columnTable) place(all []columnar.About) (placed, error) {
	columns := make([]nodeColumn, len(all))
	for i, c := range all {
		number := c.Kind == columnar.Ints || c.Kind == columnar.Floats
		columns[i] = nodeColumn{name: c.Name, number: number && !c.List, list: number && c.List, word: c.Kind == columnar.Text && !c.List}
	}
	return t.says.place(t.info.name, t.kind, t.nodes, columns, t.asked)
}

// pandasIndex is the column of row numbers that pandas adds.
const pandasIndex = "__index_level_0__"

// pickFeatures chooses a column of lists, if it is called features or is the only
// column, else all columns of numbers.
func (t *columnTable) pickFeatures(p *placed, all []columnar.About) {
	one := -1
	var scalar []int
	for _, i := range p.value {
		switch {
		case all[i].Name == pandasIndex:
			p.ignored = append(p.ignored, pandasIndex)
			continue
		case all[i].List && (all[i].Name == "features" || t.nodes && all[i].Name == "x"):
			one = i
		}
		scalar = append(scalar, i)
	}
	if one < 0 && len(scalar) == 1 && all[scalar[0]].List {
		one = scalar[0]
	}
	if t.nodes && one < 0 { // lists of other names are left out, beside numbers
		numbers := slices.DeleteFunc(slices.Clone(scalar), func(i int) bool { return all[i].List })
		for _, i := range scalar {
			if all[i].List {
				p.ignored = append(p.ignored, all[i].Name)
			}
		}
		scalar = numbers
	}
	p.value = scalar
	if one >= 0 {
		t.list = true
		p.value = []int{one}
		for _, i := range scalar {
			if i != one {
				p.ignored = append(p.ignored, all[i].Name)
			}
		}
	}
}

// suits returns an error if a column has the wrong type.
func (t *columnTable) suits(c columnar.About, id bool) error {
	wrong := func(remedy string) error {
		return fmt.Errorf("%s: the column %s has a type that can't be taken: %s", t.info.name, c.Name, remedy)
	}
	number := c.Kind == columnar.Ints || c.Kind == columnar.Floats
	switch {
	case id && (c.List || c.Kind != columnar.Ints && c.Kind != columnar.Text):
		return wrong("ids are integers or strings")
	case id:
	case t.kind == featuresTable && (c.List != t.list || !number):
		return wrong("features are numbers, in a column each or as one column of lists")
	case t.kind == edgesTable && (c.List || !number) && strings.EqualFold(c.Name, "weight"):
		return wrong("weights are numbers")
	case t.kind == edgesTable && (c.List || !number):
		return wrong("features of edges are numbers: name others in {dataset.edge_features}")
	case t.kind == labelsTable && (c.List || !number && c.Kind != columnar.Text):
		return wrong("labels are numbers or the names of classes")
	case t.masks != nil && (c.List || !number && c.Kind != columnar.Text):
		return wrong("masks are true or false")
	case t.kind == splitsTable && t.masks == nil && (c.List || c.Kind != columnar.Text):
		return wrong("splits are the words train, val and test")
	}
	return nil
}

// look reads the first rows, to learn how wide lists are and whether ids are text.
func (t *columnTable) look() error {
	if t.list {
		_, columns, done, err := t.head(t.wanted, 1)
		if err != nil {
			return err
		}
		t.info.width = columns[1].Lengths[0]
		done()
		if t.info.category != "" {
			t.info.width = max(1, t.info.width) // lists of other types are of other lengths
		}
		if t.info.width == 0 {
			return fmt.Errorf("%s: the list of features is empty: give each id as many features", t.info.at(1))
		}
	}
	rows, columns, done, err := t.head(t.wanted[:t.kind.ids()], records.HeadRows)
	if err != nil {
		return err
	}
	defer done()
	for i, c := range columns[:t.kind.ids()] {
		for row := range rows {
			if c.Kind == columnar.Text {
				_, ok := source.ParseID(c.Text.At(row))
				t.info.text = t.info.text || !ok && len(c.Text.At(row)) > 0
			} else {
				t.info.text = t.info.text || t.cols[i].Unsigned && c.Ints[row] < 0
			}
		}
	}
	return nil
}

// head reads the first rows of some columns. They are valid until done is called.
func (t *columnTable) head(wanted []int, most int) (rows int, columns []*columnar.Values, done func(), err error) {
	r, err := t.file.Open(wanted)
	if err != nil {
		return 0, nil, nil, t.broken(err)
	}
	rows, columns, err = r.Next(most)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s holds no rows: write %s", t.info.name, t.kind.wants())
	} else if err != nil {
		err = t.broken(err)
	}
	if err != nil {
		r.Close()
		return 0, nil, nil, err
	}
	return rows, columns, r.Close, nil
}

func (t *columnTable) broken(err error) error {
	if _, refused := errors.AsType[columnar.Refusal](err); refused {
		return fmt.Errorf("%s, %w", t.info.name, err)
	}
	return fmt.Errorf("%s can't be read (%w): write it again", t.info.name, err)
}

func (t *columnTable) about() tableAbout { return t.info }
func (t *columnTable) close() error      { return t.file.Close() }

func (t *columnTable) scan(ctx context.Context, how scanning, yield func(*rowBatch) error) error {
	wanted := t.wanted
	if how.idsOnly {
		wanted = wanted[:t.kind.ids()]
	}
	if how.categories {
		wanted = append(slices.Clone(wanted), t.column) // behind what else is wanted
	}
	r, err := t.file.Open(wanted)
	if err != nil {
		return t.broken(err)
	}
	defer r.Close()
	var batch rowBatch
	most := max(1, min(1<<15, 1<<20/max(1, t.info.width)))
	done := uint64(0)
	progress := source.NewProgress(how.report, "reading "+t.info.name, t.file.Rows(), [...]string{"edges", "vertices", "vertices", "vertices", "vertices"}[t.kind])
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		rows, columns, err := r.Next(most)
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
		progress.At(done)
	}
}
