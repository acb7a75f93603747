//go:build long

package strategies

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/api"
	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// On a small mesh, what is reported of the cases is what the jobs' records have: nothing but
// gradients travels in a step, and of these as much as the formula has, whatever the depth,
// the fan-outs and the width of features.
func TestGrappaOnASmallMesh(t *testing.T) {
	t.Parallel() // it mostly waits
	grappaOnASmallMesh(t, 24)
}

// On a small mesh, what is counted is what the formulas say, and what is not is an error.
func TestBytesOfPipeOnASmallMesh(t *testing.T) {
	t.Parallel() // it mostly waits
	const nodes, layers = 4, 8
	f := fleet.New(filepath.Join(t.TempDir(), "f"), "test")
	defer func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for range nodes {
		if _, err := f.Launch(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Until(t.Context(), "all nodes are in", f.AllReady); err != nil {
		t.Fatal(err)
	}
	on := f.Nodes[0].API()
	b := newSuite(t, bench.Config{})
	g := deepGraphs[1]
	g.like.vertices, g.like.edges = 600, 4800
	figures, err := countAll(t.Context(), b, on, nodes, []deepGraph{g}, layers)
	if err != nil {
		t.Fatal(err)
	}
	list := b.report.Moved
	if len(list) != len(countedModels)*3 || figures[0].Value != float64(len(list)) || !figures[1].Holds {
		t.Fatalf("%+v of %+v", figures, list)
	}
	for i, m := range list {
		if m.Rows == 0 || (m.Sums > 0) != (i%3 != 1) || m.Strategy != []string{"graph", "pipe 4x1", "pipe 2x2"}[i%3] || (m.Alpha > 0) != (i%3 != 1) || m.Nodes != nodes {
			t.Errorf("%+v", m)
		}
	}
	if m := list[4]; m.Rows != 2*list[1].Rows || m.RatioBy != float64(layers)*list[3].Alpha/6 || math.Abs(m.Ratio/m.RatioBy-1) > 1e-9 {
		t.Errorf("a gcnii sends %+v", m)
	}
	if m := list[1]; math.Abs(m.Ratio/m.RatioBy-float64(layers-1)/layers) > 1e-9 { // the first layer reads features
		t.Errorf("a gcn sends %+v", m)
	}
	if out := printed(t, &Report{Moved: list}); !strings.Contains(out, "pipe 2x2") {
		t.Error(out)
	}

	// Where features are wider than hidden rows and owners multiply them, a layer more sends rows, and
	// the bytes are the formula's, too.
	wide := g.made(nodes, 4*countedHidden)
	d, err := on.GenerateDataset(t.Context(), wide, func(api.DatasetEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cutAgain(t.Context(), b, wide, d)
	if err != nil {
		t.Fatal(err)
	}
	var rows []uint64
	for _, owned := range []bool{false, true} {
		a := arrangements(nodes)[2]
		a.owned = owned
		m, err := countOne(t.Context(), b, on, d, c, a, "gcn", layers)
		if err != nil {
			t.Error(err)
		}
		rows = append(rows, m.Rows)
	}
	if rows[1] <= rows[0] {
		t.Errorf("%d bytes of rows travel where readers multiply, and %d where owners do", rows[0], rows[1])
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}

	r := g.made(nodes, 8)
	d, err = on.GenerateDataset(t.Context(), r, func(api.DatasetEvent) {})
	if err != nil {
		t.Fatal(err)
	}
	other := r
	other.Seed++
	if c, err := cutAgain(t.Context(), b, other, d); err == nil || !strings.Contains(err.Error(), "cut differently") {
		t.Errorf("another graph's cut is %+v, %v", c, err)
	}
	c, err = cutAgain(t.Context(), b, r, d)
	if err != nil {
		t.Fatal(err)
	}
	by, err := newFormula(t.Context(), d, c, arrangements(nodes)[1], "gcn", layers, countedHidden)
	if err := errors.Join(err, c.close()); err != nil {
		t.Fatal(err)
	}
	if _, err := by.of(api.JobEpoch{Epoch: 2, Bytes: api.JobBytes{Activation: by.expected.RowsBy + 4, Gradient: by.expected.SumsBy}}); err == nil {
		t.Error("four bytes more than the formula's are none")
	}
	if _, err := by.of(api.JobEpoch{Epoch: 2, Bytes: api.JobBytes{Activation: by.expected.RowsBy, Gradient: by.expected.SumsBy}}); err != nil {
		t.Error(err)
	}
}
