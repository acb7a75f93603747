package source

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// Asked returns the targets that a task asks for. one: it asks for one class, or for nothing,
// where a vertex has one label.
func (o *Options) Asked() (t graph.Targets, one bool, err error) {
	switch o.Task {
	case "":
		return graph.OneClass, false, nil
	case "class":
		return graph.OneClass, true, nil
	case string(graph.YesOrNo), string(graph.Numbers):
		return graph.Targets(o.Task), false, nil
	}
	return graph.OneClass, false, fmt.Errorf("{dataset.task} is %q: give class, multilabel or regression", o.Task)
}

// Targets collects targets with columns, row after row, and finds out what they are.
type Targets struct {
	Memory  *Memory
	Columns int
	// Whole means that they are stored as integers, where -1 is what is missing unless they
	// are to be numbers.
	Whole bool

	cells []float32
}

// Add adds some cells; NaN is a missing one. Their places are counted by row and column.
func (t *Targets) Add(count int, cell func(i int) float64) (err error) {
	if t.cells, err = Enlarge(t.Memory, t.cells, count, 4); err != nil {
		return err
	}
	for i := range count {
		v := cell(i)
		x := float32(v)
		if math.IsInf(float64(x), 0) {
			at := len(t.cells)
			return fmt.Errorf("row %d, column %d: the target %v is infinite as a float32: scale it, or make it NaN, which is missing", at/t.Columns, at%t.Columns, v)
		}
		t.cells = append(t.cells, x)
	}
	return nil
}

// Place makes room for so many rows, in which everything is missing: for Put, in place of Add.
func (t *Targets) Place(rows int) (err error) {
	if t.cells, err = Enlarge(t.Memory, t.cells, rows*t.Columns, 4); err != nil {
		return err
	}
	for range rows * t.Columns {
		t.cells = append(t.cells, float32(math.NaN()))
	}
	return nil
}

// Put sets a cell, and returns what it was.
func (t *Targets) Put(row, column int, x float32) (was float32) {
	cell := &t.cells[row*t.Columns+column]
	was, *cell = *cell, x
	return was
}

// ParseTarget reads a target from text: a number, or true or false. Of what means that it is
// missing, it returns NaN.
func ParseTarget(b []byte) (float32, error) {
	switch {
	case len(b) == 0 || bytes.EqualFold(b, []byte("nan")):
		return float32(math.NaN()), nil
	case bytes.EqualFold(b, []byte("true")):
		return 1, nil
	case bytes.EqualFold(b, []byte("false")):
		return 0, nil
	}
	return ParseFloat(b)
}

// ExplainTarget returns an error that says why a target can't be read.
func ExplainTarget(what string, b []byte, err error) error {
	switch {
	case errors.Is(err, ErrNotFinite):
		return fmt.Errorf("the %s is %s: write a finite number, or leave it empty", what, b)
	case errors.Is(err, ErrOutOfRange):
		return fmt.Errorf("the %s %s does not fit in 32 bits: scale it down", what, Shorten(b))
	}
	return fmt.Errorf("the %s %s is not a number: write 0 or 1 of each label, or numbers, and nothing where one is missing, or name other columns with {dataset.label_columns}", what, Shorten(b))
}

// Rows returns how many rows were added.
func (t *Targets) Rows() int { return len(t.cells) / t.Columns }

// Settle gives the targets to a graph, as the kind that was asked for; of OneClass: as 0 and 1
// if there is nothing else, or else as numbers. It returns a note on what they are.
func (t *Targets) Settle(asked graph.Targets, to *graph.Meta, columns *graph.Columns) (note string, err error) {
	if t.Columns > graph.MaxTargets {
		return "", fmt.Errorf("it has %d columns of targets, and at most %d can be taken: leave some out", t.Columns, graph.MaxTargets)
	}
	odd, missing := -1, 0
	for i, x := range t.cells {
		switch {
		case x != x || t.Whole && x == -1:
			missing++
		case x != 0 && x != 1 && odd < 0:
			odd = i
		}
	}
	kind := asked
	if kind == graph.OneClass {
		if kind = graph.YesOrNo; odd >= 0 {
			kind = graph.Numbers
		}
	}
	to.Classes, to.Targets = t.Columns, kind
	if kind == graph.Numbers {
		columns.Numbers = t.cells
		missing = 0
		for _, x := range t.cells {
			if x != x {
				missing++
			}
		}
		if missing == len(t.cells) {
			return "", fmt.Errorf("no vertex has a target: all are NaN")
		}
		return fmt.Sprintf("targets are numbers, in %s; %d of %d are missing", counted(t.Columns, "column"), missing, len(t.cells)), nil
	}
	if odd >= 0 {
		return "", fmt.Errorf("row %d, column %d: the target is %v, and of several labels each is 0 or 1: give {dataset.task} regression to learn numbers", odd/t.Columns, odd%t.Columns, t.cells[odd])
	}
	if missing == len(t.cells) {
		return "", fmt.Errorf("no vertex has a target: all are missing")
	}
	if err := t.Memory.Grow(0, uint64(len(t.cells))); err != nil {
		return "", err
	}
	columns.YesOrNo = make([]uint8, len(t.cells))
	for i, x := range t.cells {
		switch x {
		case 0:
		case 1:
			columns.YesOrNo[i] = 1
		default:
			columns.YesOrNo[i] = graph.Missing
		}
	}
	t.cells = nil
	return fmt.Sprintf("targets are a yes or no in %s; %d of %d are missing", counted(t.Columns, "column"), missing, len(columns.YesOrNo)), nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
