package nn

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
)

// A Model is a row of stages. It holds no numbers: weights and gradients are given
// to each Pass, in one row in the order of Params.
type Model struct {
	spec    Spec
	stages  []*stage
	params  []Param
	initial []Initial // of the params
	size    int
	hops    int
}

// New checks the spec and lays the model out.
func New(spec Spec, features, classes int) (*Model, error) {
	if err := spec.check(features, classes); err != nil {
		return nil, err
	}
	m := &Model{spec: spec}
	m.layout(features, classes)
	if m.size > maxSize {
		return nil, fmt.Errorf("the model would have %d weights, but at most %d may be: lower --hidden or --layers", m.size, maxSize)
	}
	return m, nil
}

// Spec is what the model was made from.
func (m *Model) Spec() Spec { return m.spec }

// Hops is how many blocks a pass takes.
func (m *Model) Hops() int { return m.hops }

// Form is what the model wants of its blocks.
func (m *Model) Form() sample.Form { return m.spec.form() }

// A Param is one matrix of weights.
type Param struct {
	Name       string // "layers.0.weight"
	Rows, Cols int
	Offset     int // of its first element in the row of all
}

// Params lists all weights.
func (m *Model) Params() []Param { return slices.Clone(m.params) }

// Size is how many numbers the weights are.
func (m *Model) Size() int { return m.size }

// A StageInfo is one stage: a layer with what belongs to it, or a product before or
// after the layers.
type StageInfo struct {
	Name    string // "layers.0", "head"
	Hops    int    // 0: it sees each row by itself; 1: it takes a block
	In, Out int    // columns of its rows, as it takes and as it gives them
	// Carry is what travels beside the rows: the first representation of a gcnii,
	// what a model with jumps collects. 0: nothing.
	CarryIn, CarryOut int
}

// Stages lists them.
func (m *Model) Stages() []StageInfo {
	list := make([]StageInfo, len(m.stages))
	for i, s := range m.stages {
		list[i] = s.info
	}
	return list
}
