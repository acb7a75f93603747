package edgerows

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// described is a source of edges from 0 to 1, of which each has a weight and a feature.
type described struct {
	graph.Source
	weights, features []float32
}

func (d described) Meta() graph.Meta {
	return graph.Meta{Vertices: 2, Edges: uint64(len(d.features)), EdgeFeatures: 1, Weighted: d.weights != nil}
}

func (d described) Edges(_ context.Context, yield func(graph.EdgeBatch) error) error {
	for i := range d.features {
		b := graph.EdgeBatch{Src: []uint32{0}, Dst: []uint32{1}, Rows: d.features[i : i+1]}
		if d.weights != nil {
			b.Weights = d.weights[i : i+1]
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

// wrapped returns a source whose edges have been read, and the numbers that they had for weights.
func wrapped(t *testing.T, d described) (r *Rows, numbers []float32, err error) {
	t.Helper()
	folder := t.TempDir()
	src, err := Wrap(d, folder, func(err error) error { return err })
	if err != nil {
		t.Fatal(err)
	}
	r = Of(src)
	t.Cleanup(r.Discard)
	err = src.Edges(t.Context(), func(b graph.EdgeBatch) error {
		if b.Rows != nil {
			t.Errorf("edges still have the features %v", b.Rows)
		}
		numbers = append(numbers, b.Weights...)
		return nil
	})
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	return r, numbers, err
}

// merged puts the rows of a shard's edges into their order, all of which are one edge from the second
// on, and returns their weights and the bytes of their features.
func merged(t *testing.T, r *Rows, dtype graph.DType, order []float32) (weights []float32, rows []byte, err error) {
	t.Helper()
	m, err := r.Merger(dtype)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Begin()
	for i, number := range order {
		weights = append(weights, m.Take(number, i > 1))
	}
	if err := m.End(); err != nil {
		return nil, nil, err
	}
	var to bytes.Buffer
	err = m.Write(2, make([]byte, 3), func(b []byte) error {
		_, err := to.Write(b)
		return err
	})
	return weights, to.Bytes(), err
}

func TestRowsInTheOrderOfAShard(t *testing.T) {
	r, numbers, err := wrapped(t, described{weights: []float32{5, 6, 7}, features: []float32{1, 2, 4}})
	if err != nil || len(numbers) != 3 || math.Float32bits(numbers[2]) != 2 || !r.Weighted(false) {
		t.Fatalf("numbers %v, %v", numbers, err)
	}
	weights, rows, err := merged(t, r, graph.F32, []float32{numbers[2], numbers[0], numbers[1]})
	if err != nil || weights[0] != 7 || weights[1] != 5 || weights[2] != 6 {
		t.Errorf("weights %v, %v", weights, err)
	}
	want := binary.LittleEndian.AppendUint32(nil, math.Float32bits(4))
	want = binary.LittleEndian.AppendUint32(want, math.Float32bits(1.5)) // the mean of two edges that are one
	if !bytes.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	if bits := Bytes(described{weights: []float32{1}, features: []float32{1}}.Meta()); bits != 8 {
		t.Errorf("an edge takes %d bytes", bits)
	}
}

func TestFeaturesThatCanNotBeStored(t *testing.T) {
	for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		_, _, err := wrapped(t, described{features: []float32{1, x}})
		if err == nil || !strings.Contains(err.Error(), "the edge from vertex 0 to 1 has the feature") {
			t.Errorf("%v: %v", x, err)
		}
	}
	r, numbers, err := wrapped(t, described{features: []float32{math.MaxFloat32, 2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := merged(t, r, graph.BF16, numbers); err == nil || !strings.Contains(err.Error(), "beyond what bf16 holds") {
		t.Errorf("rounded beyond: %v", err)
	}
}

func TestEdgesWithoutFeatures(t *testing.T) {
	var r *Rows
	if m, err := r.Merger(graph.F32); m != nil || err != nil || !r.Weighted(true) || r.Weighted(false) {
		t.Errorf("%v, %v", m, err)
	}
	r.Discard()
}
