package npz

import (
	"archive/zip"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/read/readtest"
	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// Labels with columns are a yes or no where there is nothing else, or numbers; one column of
// numbers that are not whole is a target, too.
func TestTargets(t *testing.T) {
	nan := float32(math.NaN())
	const no = graph.Missing
	for name, c := range map[string]struct {
		task    string
		y       readtest.NPY
		targets graph.Targets
		columns int
		yes     []uint8
		numbers []float32
		note    string
	}{
		"bytes":          {"", readtest.Of("(5, 2)", []int8{0, 1, 1, 0, -1, 1, 0, 0, -1, -1}), graph.YesOrNo, 2, []uint8{0, 1, 1, 0, no, 1, 0, 0, no, no}, nil, "g.npz: y: targets are a yes or no in 2 columns; 3 of 10 are missing."},
		"floats of 0, 1": {"", readtest.Of("(5, 2)", []float32{0, 1, 1, 0, nan, 1, 0, 0, 1, 1}), graph.YesOrNo, 2, []uint8{0, 1, 1, 0, no, 1, 0, 0, 1, 1}, nil, "1 of 10 are missing."},
		"asked numbers":  {"regression", readtest.Of("(5, 2)", []float32{0, 1, 1, 0, nan, 1, 0, 0, 1, 1}), graph.Numbers, 2, nil, []float32{0, 1, 1, 0, nan, 1, 0, 0, 1, 1}, "targets are numbers, in 2 columns; 1 of 10 are missing."},
		"numbers":        {"", readtest.Of("(5, 2)", []float64{0, 1.5, 1, 0, -2, 1, 0, 0, 1, 1}), graph.Numbers, 2, nil, []float32{0, 1.5, 1, 0, -2, 1, 0, 0, 1, 1}, "0 of 10 are missing."},
		"whole numbers":  {"", readtest.Of("(5, 2)", []int64{0, 7, 1, 0, -1, 1, 0, 0, 1, 1}), graph.Numbers, 2, nil, []float32{0, 7, 1, 0, -1, 1, 0, 0, 1, 1}, "0 of 10 are missing."},
		"one column":     {"", readtest.Of("(5,)", []float32{0, 1, 1, 0.5, nan}), graph.Numbers, 1, nil, []float32{0, 1, 1, 0.5, nan}, "targets are numbers, in 1 column; 1 of 5 are missing."},
		"asked of one":   {"regression", readtest.Of("(5, 1)", []int64{0, 1, 2, 3, 4}), graph.Numbers, 1, nil, []float32{0, 1, 2, 3, 4}, "targets are numbers"},
		"a lone label":   {"multilabel", readtest.Of("(5,)", []int64{0, 1, 1, 1, -1}), graph.YesOrNo, 1, []uint8{0, 1, 1, 1, no}, nil, "in 1 column"},
	} {
		h := readtest.MustHold(t, Open, readtest.Lists().With("y", new(c.y)).File(t, zip.Store), source.Options{Task: c.task})
		same := slices.EqualFunc(h.Targets.Numbers, c.numbers, func(a, b float32) bool { return a == b || a != a && b != b })
		if h.Meta.Targets != c.targets || h.Meta.Classes != c.columns || h.Labels != nil || !slices.Equal(h.Targets.YesOrNo, c.yes) || !same {
			t.Errorf("%s: %+v, %v", name, h.Meta, h.Targets)
		}
		if !strings.Contains(strings.Join(h.Notes, " "), c.note) {
			t.Errorf("%s: notes %q", name, h.Notes)
		}
	}
	for _, c := range []struct {
		task string
		y    readtest.NPY
		want string
	}{
		{"class", readtest.Of("(5, 2)", []int8{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}), "it has 2 columns, and a vertex has one label: save one column, or numpy.argmax(y, axis=1) if they are one-hot"},
		{"class", readtest.Of("(5,)", []float32{0, 1, 1, 0.5, 0}), "vertex 3: the label 0.5 is not an integer"},
		{"multilabel", readtest.Of("(5, 2)", []int8{0, 1, 0, 1, 0, 3, 0, 1, 0, 1}), "row 2, column 1: the target is 3, and of several labels each is 0 or 1: give {dataset.task} regression to learn numbers"},
		{"links", readtest.Of("(5,)", []int64{0, 1, 1, 1, 0}), `{dataset.task} is "links": give class, multilabel or regression`},
	} {
		path := readtest.Lists().With("y", new(c.y)).File(t, zip.Store)
		readtest.Refused(t, Open, path, source.Options{Task: c.task}, c.want)
	}
}
