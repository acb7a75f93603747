package evaluate

import (
	"math"
	"runtime"
	"testing"
	"weak"

	"github.com/hopmesh/hopmesh/engine/dataset"
	"github.com/hopmesh/hopmesh/engine/enginetest"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/task"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// More edges than a block can have are in no part over all vertices, however much memory
// there is.
func TestEdgesBeyondOneBlock(t *testing.T) {
	d, err := dataset.Open(enginetest.Communities(t, 1500), 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	model, err := nn.New(evalSpecs()["sage"], 100, 5)
	if err != nil {
		t.Fatal(err)
	}
	for edges, want := range map[int]bool{math.MaxInt32: true, math.MaxInt32 + 1: false, 3 << 30: false} {
		o := Outlook{Model: model, Topology: d.Topology, Columns: 100, Alone: true, Rows: 10 << 20, Edges: edges}
		i, err := o.Inference()
		if err != nil {
			t.Fatal(err)
		}
		for _, memory := range []uint64{1 << 40, math.MaxUint64 / 2} {
			if i.Limit(memory); i.plan(len(model.Stages())).whole != want {
				t.Errorf("%d edges, memory %d: one part over all vertices is %v", edges, memory, !want)
			}
		}
		if least := i.Least(); least > 64<<20 {
			t.Errorf("%d edges: at least %d bytes", edges, least)
		}
	}
}

// What only forecasts keeps no edges: a run may give some up before it evaluates.
func TestForecastsKeepNoEdges(t *testing.T) {
	shards := enginetest.Communities(t, 1500)
	d, err := dataset.Open(shards, 0, "none")
	if err != nil {
		t.Fatal(err)
	}
	model, err := nn.New(evalSpecs()["gcn"], d.About.Features, d.About.Classes)
	if err != nil {
		t.Fatal(err)
	}
	e := New(d, Nodes{}, task.Spec{Loss: task.Softmax, Metric: task.Accuracy, Width: d.About.Classes})
	e.Add(model, tensor.Matrix{})
	least := e.Least()
	before := weak.Make(d.Topology)
	if d.Topology, err = sample.NewTopology(shards); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if before.Value() != nil || e.Least() != least {
		t.Errorf("the edges of before are in memory still, or %d bytes are not %d", e.Least(), least)
	}
}
