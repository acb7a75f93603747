package link

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/nn"
)

// A Decoder turns the embeddings of two vertices into the logit of an edge between them. It may
// have memory of its own, so only one goroutine at a time may use it.
//
// w are its weights, one matrix after the other, as Weights lists them. A relation is that of the
// edge, from 0; where edges have none it is 0.
type Decoder interface {
	// Score returns the logit of the edge from a to b.
	Score(w, a, b []float64, relation int) float64
	// Back adds the gradient of the logit, times slope, to dw, da and db. da and db may be one.
	Back(dw, da, db, w, a, b []float64, relation int, slope float64)
}

// decoders are the decoders, each a line. The first is that of recipes that name none.
var decoders = []decoder{
	dotDecoder,
	distMultDecoder,
	mlpDecoder,
}

// A decoder is what is known of a Decoder before there is one.
type decoder struct {
	name string
	// weights lists its weights for embeddings of a width and so many relations; 0: edges have none.
	weights func(width, relations int) []nn.Weight
	// equation says in words what the score s of the embeddings y and z of two vertices is. Weights
	// are named as in files.
	equation string
	// related is the same where edges have relations, if the decoder knows them; else empty.
	related string
	new     func(width int) Decoder
	// blocks returns its Blocks, which keep the weights, and beside how many numbers these have
	// beside them, with those that devices keep for products of weights.
	blocks func(width int, weights []float32, t Threads) Blocks
	beside func(width, threads int) int
}

// size returns how many weights it has for embeddings of a width and so many relations.
func (d decoder) size(width, relations int) (n int) {
	for _, w := range d.weights(width, relations) {
		n += w.Rows * w.Cols
	}
	return n
}

// Prefix begins the names of a decoder's weights in files, with a dot.
const Prefix = "decoder"

// OfTriples is the decoder of recipes of triples that name none.
const OfTriples = "distmult"

// Decoders are the names of the decoders.
var Decoders = names()

func names() (all []string) {
	for _, d := range decoders {
		all = append(all, d.name)
	}
	return all
}

// named returns the decoder of a name.
func named(name string) (d decoder, err error) {
	i := slices.Index(Decoders, name)
	if i < 0 {
		return d, fmt.Errorf("{link.decoder} is %q: it is one of %v", name, Decoders)
	}
	return decoders[i], nil
}

// Size returns how many weights the decoder of a name has for embeddings of a width and so many
// relations; 0: edges have none.
func Size(name string, width, relations int) (int, error) {
	d, err := named(name)
	if err != nil {
		return 0, err
	}
	return d.size(width, relations), nil
}

// NewDecoder returns the decoder of a name, which must be one of Decoders, for embeddings of a
// width.
func NewDecoder(name string, width int) Decoder {
	d, err := named(name)
	if err != nil {
		panic("link: " + err.Error())
	}
	return d.new(width)
}

// Extend returns a model of embeddings with the weights of a decoder at the end of its own.
func Extend(m *nn.Model, decoder string, width, relations int) (*nn.Model, error) {
	d, err := named(decoder)
	if err != nil {
		return nil, err
	}
	return m.With(Prefix, d.weights(width, relations))
}

// Step describes a decoder of embeddings of a width in words.
func Step(decoder string, width, relations int) (s nn.Step, err error) {
	d, err := named(decoder)
	if err != nil {
		return s, err
	}
	equation := d.equation
	if relations > 0 && d.related != "" {
		equation = d.related
	}
	s = nn.Step{Name: Prefix, Equation: equation, Tensors: []string{}, In: width, Out: 1}
	for _, w := range d.weights(width, relations) {
		s.Tensors = append(s.Tensors, Prefix+"."+w.Name)
	}
	return s, nil
}
