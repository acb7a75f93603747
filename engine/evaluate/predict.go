package evaluate

import (
	"context"
	"errors"

	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// Embeddings returns how many of a model's stages make its embeddings, which are the rows
// that enter the last layer or, if the model has one, the head, and how many columns these
// have.
func Embeddings(stages []nn.StageInfo) (n, columns int, err error) {
	n = len(stages) - 1
	if n == 0 {
		return 0, 0, errors.New("the model has one layer only, which takes the features themselves: there are no embeddings before it")
	}
	if stages[n].Hops == 0 && stages[n].CarryIn > 0 {
		return n, stages[n].CarryIn, nil // see answer
	}
	return n, stages[n-1].Out, nil
}

// Predict runs the first stages, and yields the rows of all vertices in order, some at a
// time: they lie one after another, and are valid until yield returns. Nothing is yielded
// after fault, which is called once rows have been read, returns an error.
func (i *Inference) Predict(ctx context.Context, stages, columns int, fault func() error, yield func(first int, rows []float32) error) error {
	buffer := make([]float32, chunkRows*columns)
	return i.Run(ctx, stages, func(first int, y tensor.Matrix) error {
		for row := 0; row < y.Rows; row += chunkRows {
			some := y.RowRange(row, min(chunkRows, y.Rows-row))
			to := buffer[:some.Rows*columns]
			i.device.Read32(to, some)
			if err := fault(); err != nil {
				return err
			}
			if err := yield(first+row, to); err != nil {
				return err
			}
		}
		return nil
	})
}
