package nn_test

import (
	"context"
	"fmt"

	"github.com/hopmesh/hopmesh/engine/keyed"
	"github.com/hopmesh/hopmesh/engine/nn"
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/reference"
)

// contrast is a layer of one's own: what the neighbours are on average that the
// vertex itself is not, times a weight.
//
//	y = (mean(X) - X)*W + bias
//
// Residual maps, LayerNorm, activations, dropout and heads are done around it, and
// so is the bias: Forward passes e on to the last operation that writes y.
type contrast struct{ in, out int }

func (l *contrast) Weights() []nn.Weight {
	return []nn.Weight{
		{Name: "weight", Rows: l.in, Cols: l.out, Initial: nn.Glorot(l.in, l.out)},
		{Name: nn.Bias, Rows: 1, Cols: l.out, Initial: nn.Zeros},
	}
}

func (l *contrast) Forward(c *nn.Call, y tensor.Matrix, e *tensor.Epilogue) {
	difference := c.New(c.Targets(), l.in)
	c.Device.Combine(difference, -1, c.Own(c.X()), 0, tensor.Matrix{})
	c.Device.Aggregate(difference, &c.Block.CSR, tensor.Matrix{}, c.X(), tensor.Mean, true, nil)
	c.Device.MatMul(y, difference, c.Weight(0), tensor.NN, false, e)
	c.Kept[0] = difference // for Backward
}

func (l *contrast) Backward(c *nn.Call, dx, dy tensor.Matrix) {
	c.Device.MatMul(c.Gradient(0), c.Kept[0], dy, tensor.TN, true, nil)
	if dx.None() {
		return // nobody wants the gradient of the features
	}
	difference := c.New(c.Targets(), l.in)
	c.Device.MatMul(difference, dy, c.Weight(0), tensor.NT, false, nil)
	c.Device.AggregateBack(dx, &c.Block.CSR, tensor.Matrix{}, difference, tensor.Mean, false)
	c.Device.Combine(c.Own(dx), 1, c.Own(dx), -1, difference)
}

// It is registered once, before models are made. Blocks without values are enough
// for means.
func init() {
	nn.Register("contrast", nn.Kind{
		Weighting: sample.Ones,
		New:       func(_ nn.Spec, p nn.Place) nn.Conv { return &contrast{p.In, p.Out} },
	})
}

// A layer of one's own in a model of two of them, with a residual map and a head,
// on a ring of six vertices that hear the one before them.
func ExampleRegister() {
	spec := nn.Defaults("contrast")
	spec.Hidden, spec.Dropout, spec.Residual, spec.Head = 8, 0, true, nn.HeadLinear
	spec.Resolve()
	model, err := nn.New(spec, 6, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range model.Params() {
		fmt.Println(p.Name, p.Rows, p.Cols)
	}

	device := reference.New()
	rows, _ := device.NewArena(0)    // of a pass
	weights, _ := device.NewArena(0) // and what lives longer
	pass := model.NewPass(device, rows)
	pass.Weights = weights.Alloc(device.Type(), 1, model.Size())
	pass.Gradients = weights.Alloc(device.Type(), 1, model.Size())
	pass.Key, pass.Train = keyed.New(1, keyed.Dropout), true
	first, _ := model.Initial(context.Background(), 1)
	device.Write(pass.Weights, first)
	adam, _ := nn.NewOptimizer(nn.OptimizerSpec{Kind: "adam"}, device, weights, model.Size())

	ring, labels := sample.Block{CSR: tensor.CSR{Rows: 6, Cols: 6, Indptr: []int64{0}}}, make([]int32, 6)
	x := weights.Alloc(device.Type(), 6, 6)
	device.Zero(x)
	for v := range 6 {
		ring.Indices = append(ring.Indices, int32((v+5)%6))
		ring.Indptr = append(ring.Indptr, int64(v+1))
		device.Write(x.View(v, 1, v, 1), []float64{1})
		labels[v] = int32(v % 3 / 2)
	}
	ring.Transposed = &tensor.Transpose{Indptr: ring.Indptr, Rows: []int32{1, 2, 3, 4, 5, 0}, Edges: []int32{1, 2, 3, 4, 5, 0}}

	right := 0
	for range 100 {
		rows.Reset()
		device.Zero(pass.Gradients)
		logits := pass.Forward([]sample.Block{ring, ring}, nn.Input{Dense: x})
		_, right = device.CrossEntropy(logits, logits, labels, 1)
		pass.Backward(logits)
		adam.Step(pass.Weights, pass.Gradients, 0.02)
	}
	fmt.Println(right, "of 6 right")

	// Output:
	// layers.0.weight 6 8
	// layers.0.bias 1 8
	// layers.0.residual.weight 6 8
	// layers.0.residual.bias 1 8
	// layers.1.weight 8 8
	// layers.1.bias 1 8
	// layers.1.residual.weight 8 8
	// layers.1.residual.bias 1 8
	// head.weight 8 2
	// head.bias 1 2
	// 6 of 6 right
}
