// Package nn implements graph neural networks: layers, models made of them, and
// optimizers.
//
// Everything is written once in terms of engine/tensor operations and never accesses an
// element, so that the same code runs in float32 on CPUs and GPUs, and in float64 where
// gradients are checked.
//
// A model is a sequence of stages. A stage is a convolution (or a linear map of each row)
// together with bias, residual map, LayerNorm, activation and dropout. The stage applies
// those; a convolution implements only what is its own, in one file. To add one,
// implement Conv and Register it, as this package's example does.
//
// A kind of model is a convolution in a frame, which says what surrounds it. resgcn is
// ResGCN+ as GNNPipe's authors have it: the convolutions of sage, with the aggregator
// mean, in residual layers. With f(x) = drop(ReLU(norm(x))), which has weights of its own
// each time, it computes
//
//	x = encoder(features)
//	x = conv(x)              the first layer
//	x = x + conv(f(x))       each of the others
//	logits = head(f(x))
//
// # Names of weights
//
// Weights are named as in common state_dicts: "layers.0.weight", "layers.0.root.weight",
// "layers.0.bias", "layers.0.norm.weight", "head.weight". A matrix is stored In x Out, so
// that a layer computes rows times weight: it is the transpose of a PyTorch Linear
// weight. The In x Out weights are:
//
//   - gcn, gcnii, mlp: weight. sage, resgcn: weight (of the neighbours) and
//     root.weight (of the vertex itself). gin: inner.weight, then weight.
//   - gat: weight, with the heads side by side, and attention.source and
//     attention.target, 1 x Out. With version 2: source.weight, target.weight and
//     attention.
//   - hetero: those of its convolution, behind "relations.", each with one part for each
//     relation, one below another; their biases, too.
//   - residual.weight, encoder.weight, head.weight.
package nn
