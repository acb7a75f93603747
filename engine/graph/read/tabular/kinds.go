package tabular

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/graph/read/source"
)

// A tableKind is what the rows of a table describe.
type tableKind int

const (
	edgesTable tableKind = iota
	featuresTable
	labelsTable
	splitsTable
	idsTable // of which graphs are not made
)

func (k tableKind) String() string {
	return [...]string{"edges", "features", "labels", "splits", "ids"}[k]
}

// wants says what a row of the table must hold.
func (k tableKind) wants() string {
	return [...]string{"a source and a target in each row", "an id and its features in each row", "an id and its label in each row",
		"an id and train, val or test in each row", "an id in each row"}[k]
}

// ids is how many columns of ids there are.
func (k tableKind) ids() int {
	if k == edgesTable {
		return 2
	}
	return 1
}

// maxSplits bounds the columns of a table of splits: each costs a byte a vertex.
const maxSplits = 256

func tooManySplits(name string, n int) error {
	return fmt.Errorf("%s has %d splits and at most %d can be taken: leave some out", name, n, maxSplits)
}

// placed holds the columns of the ids and of the values.
type placed struct {
	id      [2]int
	value   []int
	ignored []string
	masks   bool // the values are masks of one split
	weighs  bool // the first value of an edge is its weight

	category int    // the column of types or relations; -1: no such column
	hint     string // a note on another one that may have been meant
}

// digestOf returns what distinguishes the names of a table's columns of features or labels.
func digestOf(kind tableKind, names []string, p placed) string {
	if kind != featuresTable && kind != labelsTable || len(p.value) < 2 {
		return ""
	}
	h := sha256.New()
	for _, i := range p.value {
		_, _ = fmt.Fprintf(h, "%q,", strings.ToLower(names[i])) // it never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// notOneColumn is the error of a table of ids of which nobody knows which column they are in.
func notOneColumn(at string, columns int) error {
	return fmt.Errorf("%s: there are %d columns, and none is called id in a header: give one column of ids, or call theirs id", at, columns)
}

// marked returns which of n columns are listed. There may be a million of them.
func marked(n int, lists ...[]int) []bool {
	is := make([]bool, n)
	for _, i := range slices.Concat(lists...) {
		is[i] = true
	}
	return is
}

// placeColumns finds a table's columns by their names. asked are those of labels, or of the features
// of edges.
func placeColumns(name string, kind tableKind, names, asked []string) (placed, error) {
	var p placed
	switch kind {
	case edgesTable:
		p.id = [2]int{column(names, sourceNames...), column(names, targetNames...)}
		if p.id[0] < 0 || p.id[1] < 0 {
			return p, fmt.Errorf("%s has no columns called src and dst among %s: call the columns with the edges' two ends so", name, source.Listed(names))
		}
		if weight := column(names, "weight"); weight >= 0 && column(asked, "weight") < 0 {
			p.value, p.weighs = []int{weight}, true
		}
		features, err := placeEdgeFeatures(name, names, asked, p)
		if err != nil {
			return p, err
		}
		p.value = append(p.value, features...)
	case featuresTable:
		p.id[0] = max(column(names, "id"), 0)
		for i := range names {
			if i != p.id[0] && names[i] != "" { // pandas numbers rows in a column without a name
				p.value = append(p.value, i)
			}
		}
	case labelsTable:
		var err error
		if p.id[0], p.value, err = placeLabels(name, names, asked); err != nil {
			return p, err
		}
	case splitsTable:
		p.id[0] = column(names, "id")
		p.value = splitColumns(names)
		if p.id[0] < 0 {
			for p.id[0] = 0; slices.Contains(p.value, p.id[0]); {
				p.id[0]++
			}
		}
		if len(p.value) == 0 && len(names) == 2 {
			p.value = []int{1 - p.id[0]}
		}
		if len(p.value) == 0 || p.id[0] >= len(names) {
			return p, fmt.Errorf("%s has no columns called id and split, or split_0, split_1 and so on, among %s: call them so", name, source.Listed(names))
		}
		if len(p.value) > maxSplits {
			return p, tooManySplits(name, len(p.value))
		}
	}
	if kind == idsTable {
		if p.id[0] = max(column(names, "id"), 0); len(names) > 1 && column(names, "id") < 0 {
			return p, notOneColumn(name, len(names))
		}
	}
	taken := marked(len(names), p.id[:kind.ids()], p.value)
	for i, n := range names {
		if !taken[i] {
			p.ignored = append(p.ignored, n)
		}
	}
	return p, nil
}
