package train

import (
	"context"
	"errors"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// PredictOptions say what is predicted.
type PredictOptions struct {
	// Embeddings asks for the rows that enter the last layer, or the head if the
	// model has one. Else it is logits: softmax makes probabilities of them, or the
	// logistic function where the loss was bce.
	Embeddings bool
	Index      int // of a sweep's models; BestModel: the best
}

// A Prediction is what Predict is about to tell.
type Prediction struct {
	Vertices int
	Columns  int
	Epoch    int    // that the weights are of; 0: not known
	Loss     string // softmax or bce: what the logits were trained with
}

// Predict runs the model of a checkpoint, or an exported one, over all vertices with
// all their neighbours. It tells what it is about to, and then the rows of the
// vertices in order, some at a time: rows lie one after another, and are valid until
// the call returns. Of Options, it looks at Device, Threads, Memory and Dir, which is for
// what memory is too small for.
func Predict(ctx context.Context, model string, shards []*graph.Shard, o Options, p PredictOptions,
	begin func(Prediction) error, rows func(first int, rows []float32) error) error {
	w, err := readWeighed(model, p.Index)
	if err != nil {
		return err
	}
	stages, columns := w.model.Stages(), w.about.Classes
	n := len(stages)
	if p.Embeddings {
		if n--; n == 0 {
			return errors.New("the model has one layer only, which takes the features themselves: there are no embeddings before it")
		}
		columns = stages[n-1].Out
		if stages[n].Hops == 0 && stages[n].CarryIn > 0 {
			columns = stages[n].CarryIn // see answer
		}
	}
	d, err := newData(shards, 0, w.how)
	if err != nil {
		return err
	}
	if d.about.Features != w.about.Features {
		return fmt.Errorf("the model takes %d features, and the dataset has %d: predict on the dataset that it was trained on", w.about.Features, d.about.Features)
	}
	device, err := o.open()
	if err != nil {
		return err
	}
	defer device.Close()
	foreign, _ := device.(tensor.Foreign)
	if foreign != nil {
		device = lender{foreign}
	}
	kept, err := device.NewArena(4 * len(w.weights))
	if err != nil {
		return err
	}
	defer kept.Close()
	work, err := device.NewArena(0)
	if err != nil {
		return err
	}
	defer work.Close()
	weights := kept.Alloc(device.Type(), 1, len(w.weights))
	device.Write32(weights, w.weights)
	memory, err := predictMemory(d, w, n, o.Memory)
	if err != nil {
		return err
	}
	i, err := newInference(d, device, work, memory, o)
	if err != nil {
		return err
	}
	defer i.close()
	i.add(w.model, weights)
	if err := begin(Prediction{Vertices: d.topology.Vertices(), Columns: columns, Epoch: w.epoch, Loss: w.loss}); err != nil {
		return err
	}
	buffer := make([]float32, grain*columns)
	return i.run(ctx, n, func(first int, y tensor.Matrix) error {
		for row := 0; row < y.Rows; row += grain {
			some := y.RowRange(row, min(grain, y.Rows-row))
			to := buffer[:some.Rows*columns]
			device.Read32(to, some)
			if foreign != nil && foreign.Err() != nil {
				return &Broken{Device: foreign.Name(), err: foreign.Err()}
			}
			if err := rows(first+row, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// predictMemory is what inference may take of what the whole may.
func predictMemory(d *data, w *weighed, stages int, memory uint64) (uint64, error) {
	if memory == 0 {
		return leastInference, nil
	}
	i := sizesOf(d)
	i.add(w.model, tensor.Matrix{})
	others := atHome + 4*2*uint64(len(w.weights)) + 16*uint64(d.topology.Vertices())
	if least := others + i.least(stages); least > memory {
		return 0, fmt.Errorf("predicting needs %s of memory, and %s is what it may use: allow more with `hopmesh agent --memory`", gib(least), gib(memory))
	}
	return memory - others, nil
}
