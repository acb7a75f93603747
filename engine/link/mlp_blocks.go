package link

import (
	"context"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/workers"
)

const (
	// mlpTargets is how many targets a source is scored with at once: their hidden rows stay in the
	// cache.
	mlpTargets = 256
	// mlpWide is the width from which one product keeps all threads busy.
	mlpWide = 256
)

// mlpBlocks scores source by source. The rows of the first layer's weights are multiplied by the
// source's embedding once, and are then those of a perceptron on the embeddings of targets.
//
// Products of narrow embeddings are too small to be shared: each thread takes sources then, and has
// a lane of its own.
type mlpBlocks struct {
	first, second tensor.Matrix // the second layer's weights are one row
	enter         tensor.Epilogue
	bias          float32 // of the second layer
	pool          *workers.Pool
	lanes         []mlpLane // of the pool's workers

	// Of the block under way.
	done                     <-chan struct{}
	scores, sources, targets tensor.Matrix
}

// mlpLane is what one thread computes with.
type mlpLane struct {
	device tensor.Device
	scaled tensor.Matrix // the first layer's weights for a source
	hidden tensor.Matrix // of mlpTargets targets
}

// mlpLanes returns how many lanes there are.
func mlpLanes(width, threads int) int {
	if width >= mlpWide {
		return 1
	}
	return max(1, threads)
}

// mlpBeside returns how many numbers mlpBlocks keep. A product packs scaled weights or hidden rows.
func mlpBeside(width, threads int) int {
	return mlpLanes(width, threads) * width * (width + mlpTargets + max(width, mlpTargets))
}

func newMLPBlocks(width int, weights []float32, t Threads) Blocks {
	n := width * width
	m := &mlpBlocks{
		first:  tensor.OverF32(width, width, weights[:n]),
		enter:  tensor.Epilogue{Bias: tensor.OverF32(1, width, weights[n:][:width]), Activation: tensor.ReLU},
		second: tensor.OverF32(1, width, weights[n+width:][:width]),
		bias:   weights[n+2*width],
	}
	lanes, threads := mlpLanes(width, t.Count), 1
	if lanes == 1 {
		threads = t.Count
	}
	m.pool = workers.New(lanes)
	for range lanes {
		m.lanes = append(m.lanes, mlpLane{
			device: t.Open(threads),
			scaled: tensor.OverF32(width, width, make([]float32, n)),
			hidden: tensor.OverF32(mlpTargets, width, make([]float32, mlpTargets*width)),
		})
	}
	m.warm()
	return m
}

// warm computes a full product of each kind on all lanes, since devices allocate what they pack
// into with their first product, and which lane a source goes to is left to chance.
func (m *mlpBlocks) warm() {
	width := m.first.Rows
	targets := tensor.OverF32(mlpTargets, width, make([]float32, mlpTargets*width))
	to := tensor.OverF32(1, mlpTargets, make([]float32, mlpTargets))
	for i := range m.lanes {
		l := &m.lanes[i]
		l.device.ScaleRows(l.scaled, m.first, tensor.OverF32(width, 1, targets.F32()[:width]))
		l.device.MatMul(l.hidden, targets, l.scaled, tensor.NN, false, &m.enter)
		l.device.MatMul(to, m.second, l.hidden, tensor.NT, false, nil)
	}
}

// Close implements Blocks.
func (m *mlpBlocks) Close() {
	m.pool.Close()
	for _, l := range m.lanes {
		l.device.Close()
	}
}

// Begin implements Blocks.
func (*mlpBlocks) Begin(tensor.Matrix, int) {}

// Score implements Blocks.
func (m *mlpBlocks) Score(ctx context.Context, scores, sources, targets tensor.Matrix) {
	m.done, m.scores, m.sources, m.targets = ctx.Done(), scores, sources, targets
	m.pool.Run(sources.Rows, m)
	m.done, m.scores, m.sources, m.targets = nil, tensor.Matrix{}, tensor.Matrix{}, tensor.Matrix{}
}

// Do implements workers.Task: it scores one source, which takes as many multiplications for each
// target as there are weights.
func (m *mlpBlocks) Do(source, worker int) {
	select {
	case <-m.done:
		return
	default:
	}
	l := &m.lanes[worker]
	l.device.ScaleRows(l.scaled, m.first, m.sources.RowRange(source, 1).Reshape(m.first.Rows, 1))
	to := m.scores.RowRange(source, 1)
	for at := 0; at < m.targets.Rows; at += mlpTargets {
		n := min(mlpTargets, m.targets.Rows-at)
		hidden := l.hidden.RowRange(0, n)
		l.device.MatMul(hidden, m.targets.RowRange(at, n), l.scaled, tensor.NN, false, &m.enter)
		l.device.MatMul(to.View(0, 1, at, n), m.second, hidden, tensor.NT, false, nil)
	}
	row := to.F32()
	for i := range row {
		row[i] += m.bias
	}
}
