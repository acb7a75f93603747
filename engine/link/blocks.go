package link

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Blocks scores pairs in blocks: the edges from each of some sources to each of some targets.
// The logit of a pair depends on the rows of its two vertices alone, and not on the block that
// it is in, or on the number of threads: who scores given pairs and who looks for the best ones
// come to the same bits. All matrices lie in the host's memory. Only one goroutine at a time may
// use it. Scores allocate nothing, but for what a device keeps from its first product on.
type Blocks interface {
	// Begin turns rows of sources, in place, into those that Score takes for edges of a relation.
	Begin(sources tensor.Matrix, relation int)
	// Score sets scores, which has a row for each source and a column for each target, to the
	// logits of the edges between them. Once ctx has ended, it may leave some of them as they are.
	Score(ctx context.Context, scores, sources, targets tensor.Matrix)
	Close()
}

// Threads are what Blocks compute with.
type Threads struct {
	Count int
	// Open opens a device of so many threads that sees the host's memory.
	Open func(threads int) tensor.Device
}

// NewBlocks returns what scores blocks of embeddings of a width by the decoder of a name, which has
// these weights. Close closes its devices.
func NewBlocks(decoder string, width, relations int, weights []float32, t Threads) (Blocks, error) {
	d, err := named(decoder)
	if err != nil {
		return nil, err
	}
	if n := d.size(width, relations); len(weights) != n {
		return nil, fmt.Errorf("the decoder %s of embeddings of %d columns has %d weights, and the model brings %d: take a model that was trained with this {link.width}", decoder, width, n, len(weights))
	}
	return d.blocks(width, weights, t), nil
}

// BlocksBytes returns about how much memory the weights of a decoder take, and what NewBlocks
// returns beside the blocks, with what its devices keep for products of weights.
func BlocksBytes(decoder string, width, relations, threads int) uint64 {
	d, err := named(decoder)
	if err != nil {
		return 0
	}
	return 4 * uint64(d.size(width, relations)+d.beside(width, threads))
}

// dotBlocks scores by inner products.
type dotBlocks struct{ tensor.Device }

func newDotBlocks(_ int, _ []float32, t Threads) Blocks { return dotBlocks{t.Open(t.Count)} }

// Begin implements Blocks.
func (dotBlocks) Begin(tensor.Matrix, int) {}

// Score implements Blocks.
func (d dotBlocks) Score(_ context.Context, scores, sources, targets tensor.Matrix) {
	d.MatMul(scores, sources, targets, tensor.NT, false, nil)
}

// distMultBlocks scores by inner products with sources that have been multiplied by the weights.
type distMultBlocks struct {
	dotBlocks
	weights []float32
}

func newDistMultBlocks(_ int, weights []float32, t Threads) Blocks {
	return distMultBlocks{dotBlocks{t.Open(t.Count)}, weights}
}

// Begin implements Blocks.
func (d distMultBlocks) Begin(sources tensor.Matrix, relation int) {
	for i := range sources.Rows {
		row := sources.RowRange(i, 1).F32()
		for j, w := range d.weights[relation*len(row):][:len(row)] {
			row[j] *= w
		}
	}
}
