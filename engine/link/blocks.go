package link

import (
	"fmt"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Blocks scores pairs in blocks: the edges from each of some sources to each of some targets.
// The logit of a pair depends on the rows of its two vertices alone, and not on the block that
// it is in: who scores given pairs and who looks for the best ones come to the same bits.
type Blocks interface {
	// Score sets scores, which has a row for each source and a column for each target, to the
	// logits of the edges between them. Its arguments lie in the host's memory.
	Score(scores, sources, targets tensor.Matrix)
}

// NewBlocks returns what scores blocks by the decoder of a name, with the products of a device
// that sees the host's memory.
func NewBlocks(decoder string, device tensor.Products) (Blocks, error) {
	if decoder != Decoders[0] {
		return nil, fmt.Errorf("the model decodes pairs by %q, and they can be scored by %s only", decoder, Decoders[0])
	}
	return dotBlocks{device}, nil
}

// dotBlocks scores by inner products.
type dotBlocks struct{ device tensor.Products }

// Score implements Blocks.
func (d dotBlocks) Score(scores, sources, targets tensor.Matrix) {
	d.device.MatMul(scores, sources, targets, tensor.NT, false, nil)
}
