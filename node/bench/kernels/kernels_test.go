package kernels

import (
	"io"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph/generate"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/sample/baseline"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/gemm/openblas"
	"github.com/hopmesh/hopmesh/node/bench"
)

// What there is no baseline for is measured alone.
func TestWithoutBaselines(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	for _, shape := range []tensor.Shape{tensor.NN, tensor.TN, tensor.NT} {
		f, err := product(t.Context(), d, openblas.Product{M: 64, K: 32, N: 16, Shape: shape}, 1, nil)
		if err != nil || f.Value <= 0 || f.Baseline != "" {
			t.Errorf("%+v, %v", f, err)
		}
	}
	run := &bench.Run{Dir: t.TempDir(), Notes: io.Discard}
	shards, err := open(t.Context(), run, generate.Options{Kind: "rmat", Vertices: 1 << 10, Edges: 1 << 14, Seed: 1}, "sampling")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeAll(shards); err != nil {
			t.Error(err)
		}
	}()
	topology, err := sample.NewTopology(shards)
	if err != nil {
		t.Fatal(err)
	}
	f, err := samplingOne(t.Context(), topology, nil, baseline.Work{Fanouts: []int{3, 2}, Seed: 1, Roots: []uint32{1, 2, 3, 4}, Batch: 2, Threads: 1}, "sampling")
	if err != nil || f.Value <= 0 || f.Baseline != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestThreads(t *testing.T) {
	if counts := threadCounts(); counts[0] != 1 || len(counts) > 2 {
		t.Errorf("%v", counts)
	}
	if onThreads(1) != "1 thread" || onThreads(2) != "2 threads" {
		t.Error("threads are not counted")
	}
}
