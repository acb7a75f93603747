package embedding

import (
	"github.com/hopmesh/hopmesh/engine/checkpoint"
	"github.com/hopmesh/hopmesh/engine/nn"
)

// Name is that of the table in checkpoints and models.
const Name = "embedding.weight"

// The prefixes of the rows of the best epoch and of moments, as weights have them.
const (
	bestPrefix   = "best."
	momentPrefix = "optimizer."
)

// Param describes the table as a tensor of a file.
func Param(vertices, columns int) nn.Param {
	return nn.Param{Name: Name, Rows: vertices, Cols: columns}
}

// Section is the section of a file that has these rows.
func Section(prefix string, vertices, columns int, rows func() []float32) checkpoint.Section {
	return checkpoint.Section{
		Prefix: prefix, Params: []nn.Param{Param(vertices, columns)}, Here: true,
		Read: func([]float32) []float32 { return rows() },
	}
}

// Sections implements checkpoint.Extra.
func (t *Table) Sections(int) (all []checkpoint.Section) {
	section := func(prefix string, rows []float32) {
		all = append(all, Section(prefix, t.o.Vertices, t.o.Columns, func() []float32 { return rows }))
	}
	section("", t.rows)
	for _, m := range t.moments {
		section(momentPrefix+m.name+".", m.rows)
	}
	if len(t.best) > 0 {
		section(bestPrefix, t.best)
	}
	return all
}

// Read implements checkpoint.Extra. The rows lie in the file: first those of the last step with
// their moments, then those of the best epoch, if there is one.
func (t *Table) Read(f *checkpoint.File, _ int) (rows [][]float32, err error) {
	prefixes := []string{""}
	for _, m := range t.moments {
		prefixes = append(prefixes, momentPrefix+m.name+".")
	}
	if f.Has(bestPrefix + Name) {
		prefixes = append(prefixes, bestPrefix)
	}
	p := Param(t.o.Vertices, t.o.Columns)
	for _, prefix := range prefixes {
		view, err := f.View(prefix, &p)
		if err != nil {
			return nil, err
		}
		rows = append(rows, view)
	}
	return rows, nil
}

// Adopt implements checkpoint.Extra.
func (t *Table) Adopt(rows [][]float32, _ int) {
	copy(t.rows, rows[0])
	rows = rows[1:]
	for _, m := range t.moments {
		copy(m.rows, rows[0])
		rows = rows[1:]
	}
	if t.best = t.best[:0]; len(rows) > 0 {
		t.best = append(t.best, rows[0]...)
	}
}

// MaxBytes implements checkpoint.Extra.
func (t *Table) MaxBytes() uint64 { return uint64(2+len(t.moments)) * 4 * uint64(len(t.rows)) }
