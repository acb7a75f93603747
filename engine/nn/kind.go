package nn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Kind is a kind of model: which convolutions it is made of, and the frame they stand in.
type Kind struct {
	// SelfLoops and Weighting are its requirements for blocks.
	SelfLoops bool
	Weighting sample.Weighting
	// Along says that its blocks have what layers need that compute a row for each edge, also
	// where edges have no features.
	Along bool
	// New creates the convolution for one place in a model.
	New func(s Spec, p Place) Conv

	frame     frame
	related   bool // its blocks have the relations of edges
	apart     bool // and each has a convolution of its own
	typed     bool // and both their ends have weights by type
	elsewhere bool // a program computes it, and is given what edges have; users don't choose it
	// along creates the convolution that reads features of edges, if the kind has one.
	along func(s Spec, p Place) Conv
}

// A frame is what surrounds the convolutions of a model, whichever they are.
type frame int

const (
	// plain: norm, activation and dropout follow each hidden convolution.
	plain frame = iota
	// encoded: the same, between two linear maps of each row.
	encoded
	// preActivated: between two linear maps, too. Norm, ReLU and dropout precede each
	// convolution but the first, whose result is added to what they were given. They
	// precede the last map as well.
	preActivated
	// projected: plain, behind a linear map of the features. Types of vertices have columns of
	// their own, so that it is a projection of each type.
	projected
)

// residual returns the kind with the same convolutions in residual layers.
func residual(k Kind) Kind {
	k.frame = preActivated
	return k
}

// Typed returns a kind whose convolutions attend over the in-edges of all relations, with weights by
// relation and by type of vertex: sample.Together. A linear map of the features and ReLU precede
// them, a linear map follows, and nothing but norm and dropout stands between them.
func Typed(create func(s Spec, p Place) Conv) Kind {
	return Kind{Weighting: sample.Ones, New: create, frame: projected, related: true, typed: true}
}

// A Place is the position of a convolution in a model.
type Place struct {
	Layer   int // from 0
	In, Out int // columns
	Last    bool
	// Answers reports whether its output is the logits.
	Answers bool
}

// A Conv is one convolution: it computes a block's target rows from the source rows. It
// holds no numbers and no state of a pass; many passes share one.
type Conv interface {
	// Weights lists its weights. The weight named Bias is not the convolution's to add:
	// Forward gets it in e.
	Weights() []Weight
	// Forward sets y (targets x Out), and applies e, which may be nil.
	Forward(c *Call, y tensor.Matrix, e *tensor.Epilogue)
	// Backward adds to c's gradients, given dy, the gradient at y before e, and sets dx
	// (sources x In) unless that is empty. It does not change dy.
	Backward(c *Call, dx, dy tensor.Matrix)
}

// Bias is the name of the weight that the model adds to a convolution's output.
const Bias = "bias"

// A Weight is one learnt matrix.
type Weight struct {
	Name       string // within its layer: "weight"
	Rows, Cols int
	Initial    Initial
}

// mean is the kind of GraphSAGE's usual convolution.
var mean = Kind{Weighting: sample.Ones, New: newMean}

// attention is the kind of both versions of graph attention.
var attention = Kind{SelfLoops: true, Weighting: sample.Ones, New: newGAT}

// kinds holds all kinds of models.
var kinds = map[string]Kind{
	"gcn":         {SelfLoops: true, Weighting: sample.Symmetric, New: newGCN},
	"sage":        {Weighting: sample.Ones, New: newSAGE},
	"gat":         attention,
	"gin":         {Weighting: sample.Sums, New: newGIN},
	"gcnii":       {SelfLoops: true, Weighting: sample.Symmetric, New: newGCNII, frame: encoded},
	"resgcn":      residual(mean), // ResGCN+, as GNNPipe's authors have it
	"rgcn":        {Weighting: sample.Ones, New: newRGCN, frame: projected, related: true},
	"hetero:gat":  apartBy(attention),
	"hetero:gcn":  apartBy(Kind{New: func(_ Spec, p Place) Conv { return newAveraged(p, false) }}),
	"hetero:gin":  apartBy(Kind{New: newGIN}),
	"hetero:sage": apartBy(Kind{New: newSAGE}),
	"mlp":         {New: newLinear},
	Program:       {Weighting: sample.Ones, New: newElsewhere, along: newElsewhere, elsewhere: true},
}

// Register adds a kind of model under the name that users give. It must be called before
// any model is created. It panics if the name is taken.
func Register(name string, k Kind) {
	if _, taken := kinds[name]; taken || k.New == nil {
		panic(fmt.Sprintf("nn: there is a model %q already, or it has no convolution", name))
	}
	kinds[name] = k
}

// RegisterAlong adds, to a kind that there is, the convolution that it has where it reads features of
// edges. Its blocks have what such layers need (sample.Along).
func RegisterAlong(name string, along func(s Spec, p Place) Conv) {
	k := kinds[name]
	k.along = along
	kinds[name] = k
}

// convolution returns what creates a model's convolutions.
func (s *Spec) convolution() func(s Spec, p Place) Conv {
	if k := kinds[s.Model]; s.EdgeFeatures == 0 || k.along == nil {
		return k.New
	}
	return kinds[s.Model].along
}

// Models lists the names of all kinds that users choose from.
func Models() []string {
	names := slices.Sorted(maps.Keys(kinds))
	return slices.DeleteFunc(names, func(name string) bool { return kinds[name].elsewhere })
}

// either joins words with commas and a final "or".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
