package nn

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
)

// A Model is a sequence of stages. It holds no numbers: each Pass is given weights and
// gradients, as one row in the order of Params.
type Model struct {
	spec    Spec
	stages  []*stage
	params  []Param
	initial []Initial // of the params
	size    int
	added   int // of size: weights that no stage reads, the last ones
	hops    int
	split   int  // 1: the first layer is two stages (see Split)
	inputs  bool // rows of the input are learnt, see LearnInput
}

// New checks the spec and creates the model.
func New(spec Spec, features, classes int) (*Model, error) {
	if err := spec.check(features, classes); err != nil {
		return nil, err
	}
	m := &Model{spec: spec}
	m.layout(features, classes)
	if m.size > maxSize {
		return nil, fmt.Errorf("the model would have %d weights, but at most %d may be: lower {hidden} or {layers}", m.size, maxSize)
	}
	return m, nil
}

// Spec returns what the model was created from.
func (m *Model) Spec() Spec { return m.spec }

// Hops returns the number of blocks a pass takes.
func (m *Model) Hops() int { return m.hops }

// Form returns the model's requirements for its blocks.
func (m *Model) Form() sample.Form { return m.spec.form() }

// A Param is one matrix of weights.
type Param struct {
	Name       string // "layers.0.weight"
	Rows, Cols int
	Offset     int // of its first element in the row of all weights
}

// Params lists all weights.
func (m *Model) Params() []Param { return slices.Clone(m.params) }

// Size returns the number of elements in all weights.
func (m *Model) Size() int { return m.size }

// A StageInfo describes one stage: a layer with what belongs to it, or a product before
// or after the layers.
type StageInfo struct {
	Name    string // "layers.0", "head"
	Hops    int    // 0: it sees each row by itself; 1: it takes a block
	In, Out int    // columns of its input and output rows
	// CarryIn and CarryOut are the columns carried beside the rows: the first
	// representation of a gcnii, or the layers' outputs of a model with jumps; 0 if there
	// are none.
	CarryIn, CarryOut int
}

// Stages describes the stages.
func (m *Model) Stages() []StageInfo {
	list := make([]StageInfo, len(m.stages))
	for i, s := range m.stages {
		list[i] = s.info
	}
	return list
}

// Rereads reports whether anything reads the rows that a stage was entered with once its layer
// has been given what it sees.
func (m *Model) Rereads(stage int) bool {
	s := m.stages[stage]
	return s.info.Hops == 0 || !s.apart()
}

// Divide reports how a stage is divided, if it can be. sparse reports whether the features
// are.
func (m *Model) Divide(stage int, sparse bool) (d Division, ok bool) {
	s := m.stages[stage]
	conv, ok := s.conv.(divided)
	if !ok || s.info.Hops == 0 {
		return d, false
	}
	p := &Pass{model: m}
	c := &p.alone
	var in rows
	if stage == 0 && sparse {
		in.sparse = &tensor.CSR{}
	}
	c.begin(p, stage, nil, in, nil)
	d = Division{Carried: conv.carries(c), Own: conv.readsOwn() || s.residual >= 0 || s.skip}
	if d.Carried == 0 && (stage == 0 || s.before) {
		d.Carried = s.info.In
	}
	return d, true
}

// LearnInput has passes compute the gradient at their input, too, for rows that are learnt as
// weights are: Pass.InputGradient returns it. It is called before any pass is made.
func (m *Model) LearnInput() { m.inputs = true }

// Steps describes the model, in the order in which it is computed. Each stage begins with
// the rows of the one before it, or the normalised features, as x, and its result is y.
func (m *Model) Steps() []Step {
	var steps []Step
	if m.hops > 0 {
		steps = append(steps, Step{Name: "edges", Equation: edgesInWords(m.spec.form()), Tensors: []string{}})
	}
	for _, s := range m.stages {
		steps = append(steps, inWords(m, s))
	}
	return steps
}

// Resolved returns the spec with nothing left to "auto".
func (m *Model) Resolved() Spec {
	s := m.spec
	loops := LoopsOff
	if s.form().SelfLoops {
		loops = LoopsOn
	}
	s.SelfLoops = loops
	return s
}

// With returns the same model with more weights at the end of its row. No stage reads them:
// they belong to whatever reads the model's outputs, such as a decoder of pairs. The row is
// updated, summed, hashed and kept as one. Their names begin with prefix.
func (m *Model) With(prefix string, more []Weight) (*Model, error) {
	if len(more) == 0 {
		return m, nil
	}
	all := *m
	all.params, all.initial = slices.Clone(m.params), slices.Clone(m.initial)
	for _, w := range more {
		all.param(prefix+"."+w.Name, w)
		all.added += w.Rows * w.Cols
	}
	if all.size > maxSize {
		return nil, fmt.Errorf("the model and what reads its outputs would have %d weights, but at most %d may be: lower {link.width}, {hidden} or {layers}", all.size, maxSize)
	}
	return &all, nil
}

// Added returns how many of the weights are those of With.
func (m *Model) Added() int { return m.added }

// AddedOf returns the weights of With in a row of all weights, empty if there are none.
func (m *Model) AddedOf(row tensor.Matrix) tensor.Matrix {
	if m.added == 0 {
		return tensor.Matrix{}
	}
	return row.View(0, 1, m.size-m.added, m.added)
}
