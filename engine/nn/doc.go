// Package nn holds graph neural networks: layers, models made of them, optimizers.
//
// All is written once in the operations of engine/tensor and never looks at an
// element, so that the same code runs in float32 on CPUs and GPUs, and in float64
// where gradients are checked.
//
// A model is a row of stages, and a stage is a convolution (or a linear map of each
// row) with what belongs to it: bias, residual map, LayerNorm, activation, dropout.
// The stage does those; a convolution does what is its own, in one file. To add one,
// write a Conv and Register it: the example of this package does.
//
// # Names of weights
//
// Weights are named as in other people's state_dicts: "layers.0.weight",
// "layers.0.root.weight", "layers.0.bias", "layers.0.norm.weight", "head.weight".
// A matrix is stored In x Out, so that rows times weight is what a layer computes:
// it is the transpose of what PyTorch's Linear keeps. What is In x Out here:
//
//   - gcn, gcnii, resgcn, mlp: weight. sage: weight (of the neighbours) and
//     root.weight (of the vertex itself). gin: inner.weight, then weight.
//   - gat: weight, with the heads side by side, and attention.source and
//     attention.target, 1 x Out. With version 2: source.weight, target.weight and
//     attention.
//   - residual.weight, encoder.weight, head.weight.
package nn
