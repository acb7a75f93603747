//go:build cuda

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/hopmesh/hopmesh/cuda/device"
	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/stats"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// given is a mini-batch that both sides train on: its blocks, the outermost first.
type given struct {
	sample.Batch
	labels []int32
}

// timeBlocks samples mini-batches, writes them into a file for theirs.py, and times steps
// on them. Input rows are gathered from features on the GPU, by ids that come from the
// host.
func timeBlocks(ctx context.Context, m measure, folder, file string) error {
	shards, err := openGraph(folder)
	if err != nil {
		return err
	}
	all, err := m.draw(ctx, shards)
	if err != nil {
		return err
	}
	if err := write(file, all); err != nil {
		return fmt.Errorf("write blocks into %s: %w", file, err)
	}
	d, err := device.Open(0, device.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	s, err := newSteps(ctx, d, m, shards)
	if err != nil {
		return err
	}
	defer s.close()
	for i := range all {
		s.step(&all[i]) // warm-up: from now on the blocks are on the GPU
	}
	var times []float64
	for range m.rounds {
		took, err := d.Time(func() {
			for i := range all {
				s.step(&all[i])
			}
		})
		if err != nil {
			return err
		}
		times = append(times, took.Seconds()*1e3/float64(len(all)))
	}
	figure("step on given blocks, ours", stats.Median(times), "ms")
	figure("step on given blocks, ours, loss", s.loss, "")
	return nil
}

// draw samples mini-batches of the training vertices in their order.
func (m measure) draw(ctx context.Context, shards []*graph.Shard) ([]given, error) {
	topology, err := sample.NewTopology(shards)
	if err != nil {
		return nil, err
	}
	var roots []uint32
	var labels []int32
	for _, s := range shards {
		for i, mark := range s.Marks[0] {
			if mark == graph.Train {
				roots, labels = append(roots, s.First+uint32(i)), append(labels, s.Labels[i])
			}
		}
	}
	sampler := sample.New(topology, sample.Options{Fanouts: m.fanouts, Seed: 1})
	all := make([]given, m.batches)
	for i := range all {
		at := i * m.batch % max(1, len(roots)-m.batch)
		n := min(m.batch, len(roots))
		if err := sampler.Sample(ctx, &all[i].Batch, 1, uint64(i), roots[at:at+n]); err != nil {
			return nil, err
		}
		all[i].labels = labels[at : at+n]
		for b := range all[i].Blocks {
			all[i].Blocks[b].Transpose()
			all[i].Blocks[b].Stamp = tensor.NewStamp()
		}
	}
	return all, nil
}

// part is a tensor of the file with its bytes.
type part struct {
	safetensors.Tensor
	bytes []byte
}

func partOf[T int64 | int32 | uint32](name string, dtype safetensors.DType, x []T) part {
	n := len(x) * int(unsafe.Sizeof(T(0)))
	return part{safetensors.Tensor{Name: name, DType: dtype, Shape: []int64{int64(len(x))}}, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), n)}
}

func write(file string, all []given) (err error) {
	var wide, narrow []part
	for i, g := range all {
		for b := range g.Blocks {
			name := fmt.Sprintf("%d.%d.", i, b)
			wide = append(wide, partOf(name+"indptr", "I64", g.Blocks[b].Indptr))
			narrow = append(narrow, partOf(name+"indices", "I32", g.Blocks[b].Indices))
		}
		narrow = append(narrow, partOf(fmt.Sprintf("%d.vertices", i), "I32", g.Blocks[0].Vertices), partOf(fmt.Sprintf("%d.labels", i), "I32", g.labels))
	}
	parts := append(wide, narrow...)
	var tensors []safetensors.Tensor
	for _, p := range parts {
		tensors = append(tensors, p.Tensor)
	}
	layout, err := safetensors.NewLayout(tensors, nil)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(layout.Header()); err != nil {
		return err
	}
	for i, p := range parts {
		if _, err := f.WriteAt(p.bytes, layout.Offset(i)); err != nil {
			return err
		}
	}
	return nil
}

// steps is a model with its features on a device.
type steps struct {
	device         *device.Device
	features       []tensor.Part
	columns        int
	kept, rows     tensor.Arena
	weights, grads tensor.Matrix
	pass           *nn.Pass
	optimizer      *nn.Optimizer
	loss           float64
}

func newSteps(ctx context.Context, d *device.Device, m measure, shards []*graph.Shard) (*steps, error) {
	model, err := nn.New(m.spec(), shards[0].Features, shards[0].Classes)
	if err != nil {
		return nil, err
	}
	s := &steps{device: d, columns: shards[0].Features}
	if s.kept, err = d.NewArena(0); err != nil {
		return nil, err
	}
	if s.rows, err = d.NewArena(0); err != nil {
		return nil, err
	}
	for _, shard := range shards {
		x := s.kept.Alloc(tensor.F32, shard.Vertices, s.columns)
		d.Write32(x, shard.Dense)
		s.features = append(s.features, tensor.Part{First: shard.First, X: x})
	}
	s.weights, s.grads = s.kept.Alloc(tensor.F32, 1, model.Size()), s.kept.Alloc(tensor.F32, 1, model.Size())
	first, err := model.Initial(ctx, 1)
	if err != nil {
		return nil, err
	}
	d.Write(s.weights, first)
	if s.optimizer, err = nn.NewOptimizer(nn.OptimizerSpec{Kind: "adam"}, d, s.kept, model.Size()); err != nil {
		return nil, err
	}
	s.pass = model.NewPass(d, s.rows)
	s.pass.Weights, s.pass.Gradients, s.pass.Train = s.weights, s.grads, true
	return s, d.Err()
}

// step does one training step.
func (s *steps) step(g *given) {
	s.rows.Reset()
	s.device.Zero(s.grads)
	vertices := g.Blocks[0].Vertices
	x := s.rows.Alloc(tensor.F32, len(vertices), s.columns)
	s.device.Gather(x, s.features, vertices)
	z := s.pass.Forward(g.Blocks, nn.Input{Dense: x})
	loss, _ := s.device.CrossEntropy(z, z, g.labels, 1/float64(len(g.labels)))
	s.loss = loss / float64(len(g.labels))
	s.pass.Backward(z)
	s.optimizer.Step(s.weights, s.grads, 0.003)
}

func (s *steps) close() {
	s.kept.Close()
	s.rows.Close()
}
