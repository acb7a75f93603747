package tabular

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// numberedLabels are the columns called label_0, label_1 and so on.
func numberedLabels(names []string) (found []int) {
	for i, name := range names {
		if isNumbered(name, "label") {
			found = append(found, i)
		}
	}
	return found
}

// isLabel reports whether a column is called as one of labels is.
func isLabel(name string) bool {
	return column([]string{name}, classNames...) >= 0 || isNumbered(name, "label")
}

// usualLabels finds the columns of labels by what they are called: several that are numbered,
// or the first that has one of the names.
func usualLabels(names []string, one ...string) []int {
	if several := numberedLabels(names); len(several) > 0 {
		return several
	}
	if i := column(names, one...); i >= 0 {
		return []int{i}
	}
	return nil
}

// findLabels finds the columns of labels that are asked for, in that order: those that there
// are, and an error if one is missing.
func findLabels(file string, names, asked []string) (found []int, missing error) {
	for _, name := range asked {
		i := slices.Index(names, name)
		if i < 0 {
			i = column(names, name)
		}
		if i < 0 {
			missing = cmp.Or(missing, fmt.Errorf("%s has no column called %s among %s: check {dataset.label_columns}", file, source.Printable(name), source.Listed(names)))
		} else if slices.Contains(found, i) {
			missing = cmp.Or(missing, fmt.Errorf("{dataset.label_columns} names the column %s of %s twice: name it once", source.Printable(names[i]), file))
		} else {
			found = append(found, i)
		}
	}
	return found, missing
}

// placeLabels finds the columns of a table of labels.
func placeLabels(file string, names, asked []string) (id int, labels []int, err error) {
	id = column(names, "id")
	switch {
	case len(asked) > 0:
		labels, err = findLabels(file, names, asked)
	case len(names) == 2 && id < 0:
		id = 0
		if column(names, "label") == 0 {
			id = 1
		}
		return id, []int{1 - id}, nil
	case len(names) == 2:
		return id, []int{1 - id}, nil
	default:
		if labels = usualLabels(names, "label"); labels == nil && id >= 0 {
			for i, name := range names {
				if i != id && !isIndex(name) {
					labels = append(labels, i)
				}
			}
		}
		if len(labels) == 0 || len(labels) == 1 && id < 0 {
			err = fmt.Errorf("%s has no columns called id and label among %s: call them so", file, source.Listed(names))
		}
	}
	if err = cmp.Or(err, tooMany(file, labels)); err != nil {
		return 0, nil, err
	}
	if slices.Contains(labels, id) {
		return 0, nil, isID(names[id], file)
	}
	for n, i := range labels {
		if slices.ContainsFunc(labels[:n], func(other int) bool { return names[other] == names[i] }) {
			return 0, nil, fmt.Errorf("%s has two columns of labels called %s: give one of them another name", file, source.Printable(names[i]))
		}
	}
	if id < 0 {
		for id = 0; id < len(names) && (slices.Contains(labels, id) || isIndex(names[id])); {
			id++
		}
	}
	if id == len(names) {
		return 0, nil, fmt.Errorf("%s has no column called id beside the labels %s: call the column with the ids so", file, source.Listed(asked))
	}
	return id, labels, nil
}

// tooMany returns an error if there are more columns of labels than targets can have.
func tooMany(file string, labels []int) error {
	if len(labels) > graph.MaxTargets {
		return fmt.Errorf("%s has %d columns of labels, and at most %d can be taken: name fewer with {dataset.label_columns}", file, len(labels), graph.MaxTargets)
	}
	return nil
}

// isID is the error of a column that is asked for and has the names of vertices.
func isID(name, file string) error {
	return fmt.Errorf("{dataset.label_columns} names %s, which says of %s what vertex a row is about: leave it out", source.Printable(name), file)
}

// labelsOf returns the names of the columns of labels.
func labelsOf(kind tableKind, names []string, p placed) []string {
	if kind != labelsTable {
		return nil
	}
	return namesOf(names, p.value)
}

// inColumns names columns for a sentence.
func inColumns(names []string, columns []int) string {
	of := namesOf(names, columns)
	if len(of) == 1 {
		return "column " + source.Listed(of)
	}
	return "columns " + source.Listed(of)
}

// labelName names a column of labels for a sentence, by its place among them.
func labelName(labels []string, i int) string {
	if i >= len(labels) {
		return "label"
	}
	return "label " + source.Printable(labels[i])
}

// loadLabels reads the table of labels, if there is one: as a class of each vertex, or as
// targets with columns if there are several columns, other numbers than classes, or if the
// task says so.
func (t *tables) loadLabels(ctx context.Context) error {
	o := source.Options{Task: t.task}
	asked, one, err := o.Asked()
	if err != nil {
		return err
	}
	if t.set[labelsTable] == nil {
		var what string
		switch {
		case len(t.asked) > 0:
			what = "{dataset.label_columns} names " + source.Listed(t.asked)
		case asked != graph.OneClass:
			what = "{dataset.task} is " + t.task
		default:
			return nil
		}
		return fmt.Errorf("%s, and there is no table of labels or nodes beside the edges: put a file called labels or nodes into the folder with the edges", what)
	}
	about := t.set[labelsTable].about()
	switch {
	case about.width > 1 && one:
		return fmt.Errorf("%s has the labels %s of each vertex, and {dataset.task} is class, of which a vertex has one: name one column with {dataset.label_columns}", about.name, source.Listed(about.labels))
	case about.width > 1 || asked != graph.OneClass:
		return t.loadTargets(ctx, asked)
	}
	err = t.loadClasses(ctx, !one)
	if errors.Is(err, source.ErrFraction) && !one {
		t.memory.Free(uint64(len(t.labels)) * 4)
		t.labels, t.meta.Classes = nil, 0
		return t.loadTargets(ctx, graph.Numbers)
	}
	return err
}

// loadTargets reads labels as targets with columns.
func (t *tables) loadTargets(ctx context.Context, asked graph.Targets) error {
	about := t.set[labelsTable].about()
	targets := source.Targets{Memory: &t.memory, Columns: about.width, Whole: true}
	if err := targets.Place(int(t.meta.Vertices)); err != nil {
		return err
	}
	var vertices []uint32
	err := t.scan(ctx, labelsTable, scanning{targets: true, report: t.report}, func(b *rowBatch) error {
		vertices = t.ids.number(&b.ids[0], vertices)
		for i, v := range vertices {
			if v == unknownID {
				return t.unknownVertex(labelsTable, b, i)
			}
			for c, x := range b.floats[i*about.width:][:about.width] {
				switch {
				case x != x:
					continue
				case asked == graph.YesOrNo && x != 0 && x != 1 && x != -1:
					return fmt.Errorf("%s: the %s is %v, and of several labels each is 0 or 1: give {dataset.task} regression to learn numbers", about.at(b.rows[i]), labelName(about.labels, c), x)
				}
				if was := targets.Put(int(v), c, x); was != x && was == was {
					return fmt.Errorf("%s: the id %s has the %s %v here and %v in an earlier row: leave one of them", about.at(b.rows[i]), b.ids[0].show(i), labelName(about.labels, c), x, was)
				}
			}
		}
		return nil
	})
	if err != nil {
		return t.again(labelsTable, err)
	}
	note, err := targets.Settle(asked, &t.meta, &t.columns)
	if errors.Is(err, source.ErrMemory) {
		return err
	} else if err != nil {
		return fmt.Errorf("%s: %w: write %s", about.name, err, labelsTable.wants())
	}
	t.notes = append(t.notes, fmt.Sprintf("%s: %s.", about.name, note))
	if graph.CheckClassNames(about.labels, about.width) == nil {
		t.meta.ClassNames = about.labels
	} else {
		t.notes = append(t.notes, fmt.Sprintf("%s: the names of the columns are not kept, since they are no text, or longer than %s.", about.name, source.Size(graph.MaxClassNames)))
	}
	return nil
}

// sameLabels returns an error unless another machine has taken the columns that are asked for.
func sameLabels(asked, taken []string) error {
	if len(asked) > 0 && !slices.EqualFunc(asked, taken, strings.EqualFold) {
		return errors.New("the other node does not read columns of labels by their names: run the same version on all nodes")
	}
	return nil
}
