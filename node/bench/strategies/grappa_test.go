package strategies

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/node/bench"
	"github.com/hopmesh/hopmesh/node/fleet"
)

// What grappa is timed with can be asked for: three and four layers, both widths, and
// steps enough.
func TestCasesOfGrappaCanBeAskedFor(t *testing.T) {
	layers := map[string]bool{}
	for _, l := range append(isolatedLoads(widths[0]), isolatedLoads(widths[1])...) {
		if n := len(l.fanouts); n < 3 || n > 4 {
			t.Errorf("%s has %d layers", l, n)
		}
		layers[l.model+strings.Repeat("+", len(l.fanouts))] = true
		if err := l.ask("half", "grappa", 4, groupEach(4)...).Check(); err != nil {
			t.Errorf("%s: %v", l, err)
		}
		if steps := halfGraph.vertices * 6 / 10 / uint64(l.batch); steps < 4 {
			t.Errorf("%s has %d steps an epoch", l, steps)
		}
	}
	if len(layers) != 6 {
		t.Errorf("%v are not all models with three and with four layers", layers)
	}
}

// grappaOnASmallMesh checks what is reported of graphs with so many features.
func grappaOnASmallMesh(t *testing.T, widths ...int) {
	t.Helper()
	const nodes = 3
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
	b := newSuite(t, bench.Config{Nodes: nodes})
	g := graphSpec{name: "small", kind: "sbm", vertices: 2048, edges: 20_000, classes: 4, communities: 12, inside: 0.9, shards: 12, partitioner: "multilevel", planted: true}
	loads := []load{{"sage", 8, []int{4, 4, 4}, 128}, {"gat", 8, []int{3, 3, 3, 3}, 256}, {"gcn", 16, []int{6, 4, 2}, 128}}
	for _, width := range widths {
		if err := isolate(t.Context(), b, on, g, width, loads); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.report.Isolated) != len(loads)*len(widths) {
		t.Fatalf("%+v", b.report.Isolated)
	}
	for _, c := range b.report.Isolated {
		if c.Gradient != float64(c.Formula) || c.Formula <= uint64(2*(nodes-1)*4*c.Weights) || c.Else != 0 || c.Centric <= 0 || c.Grappa <= 0 || c.Ceiling < 1 || c.Seen <= 0.5 {
			t.Errorf("%+v", c)
		}
	}
	for _, f := range isolatedFigures(b.report.Isolated)[4:] {
		if !f.Holds {
			t.Errorf("%+v", f)
		}
	}
	if err := sweepCost(t.Context(), b, on, g.named(widths[0], 0), loads[0], 3); err != nil {
		t.Fatal(err)
	}
	if s := b.report.Swept[0]; s.Epochs != 4 || s.Bytes == 0 || s.Swept <= 0 || s.Still <= 0 || s.Steady <= 0 || s.Rows < 1 {
		t.Errorf("%+v", s)
	}
}

func TestFiguresOfGrappa(t *testing.T) {
	cases := []Isolated{
		{Model: "gcn", Layers: 3, Centric: 8, Grappa: 1, Ceiling: 4, Fetching: 0.75, Fanout: []int{15, 10, 5}, Gradient: 96, Formula: 96},
		{Model: "sage", Layers: 4, Centric: 2, Grappa: 1, Ceiling: 1, Fanout: []int{5, 5, 5, 5}, Gradient: 97, Formula: 96, Else: 7},
	}
	figures := isolatedFigures(cases)
	want := []struct {
		value float64
		holds bool
	}{{5, true}, {4, true}, {2, false}, {8, false}, {7, false}, {1, false}}
	for i, f := range figures {
		if math.Abs(f.Value-want[i].value) > 1e-9 || f.Holds != want[i].holds {
			t.Errorf("%+v, want %+v", f, want[i])
		}
	}
	swept := []SweepCost{{Dataset: "d", Load: "gcn", Epochs: 51, Swept: 11, Still: 10.5, Steady: 0.2}, {Dataset: "d", Load: "sage", Epochs: 51, Swept: 12, Still: 10, Steady: 0.2}}
	for i, f := range sweepFigures(swept) {
		if holds := i < 2; f.Holds != holds {
			t.Errorf("%+v", f)
		}
	}
	if by := swept[0].switches(); math.Abs(by-(11/10.2-1)) > 1e-12 {
		t.Errorf("a switch adds %g", by)
	}
	out := printed(t, &Report{Report: bench.Report{Figures: append(figures, sweepFigures(swept)...)}, Isolated: cases, Swept: swept})
	for _, want := range []string{"8.00x", "75 %", "4.00x", "15,10,5", "96 B", "FALLS SHORT", "20.0 %", "published 13 x"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}
