package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Kind is a sort of model: which convolutions it is made of.
type Kind struct {
	// SelfLoops and Weighting are what it wants of its blocks.
	SelfLoops bool
	Weighting sample.Weighting
	// New lays one convolution out for its place in a model.
	New func(s Spec, p Place) Conv
}

// A Place is where in a model a convolution stands.
type Place struct {
	Layer   int // from 0
	In, Out int // columns
	Last    bool
	// Answers says that what it returns are the logits.
	Answers bool
}

// A Conv is one convolution: how the rows of a block's sources become those of its
// targets. It holds no numbers and nothing of a pass; many passes use one.
type Conv interface {
	// Weights lists what it learns. The weight that is called Bias is not the
	// convolution's to add: Forward is given it in e.
	Weights() []Weight
	// Forward sets y (targets x Out), finished by e, which may be nil.
	Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue)
	// Backward adds to c's gradients, from dy at y as it was before e, and sets dx
	// (sources x In) if that is not left out. It leaves dy as it is.
	Backward(c *Call, dx, dy tensor.Matrix)
}

// Bias names the weight that the model adds to what a convolution returns.
const Bias = "bias"

// A Weight is one matrix that is learnt.
type Weight struct {
	Name       string // within its layer: "weight"
	Rows, Cols int
	Initial    Initial
}

// kinds are all there are.
var kinds = map[string]Kind{
	"gcn":    {SelfLoops: true, Weighting: sample.Symmetric, New: newGCN},
	"sage":   {Weighting: sample.Ones, New: newSAGE},
	"gat":    {SelfLoops: true, Weighting: sample.Ones, New: newGAT},
	"gin":    {Weighting: sample.Sums, New: newGIN},
	"gcnii":  {SelfLoops: true, Weighting: sample.Symmetric, New: newGCNII},
	"resgcn": {SelfLoops: true, Weighting: sample.Symmetric, New: newGCN},
	"mlp":    {New: newLinear},
}

// Register adds a kind of model, by the name that users give. It is called before
// any model is made, and a name is taken once.
func Register(name string, k Kind) {
	if _, taken := kinds[name]; taken || k.New == nil {
		panic(fmt.Sprintf("nn: there is a model %q already, or it has no convolution", name))
	}
	kinds[name] = k
}

// Models lists the names of all kinds.
func Models() []string { return slices.Sorted(maps.Keys(kinds)) }

// either lists words as sentences do.
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
