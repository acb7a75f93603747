package nn

import (
	"fmt"
	"slices"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// layout creates the stages of a model, in order from the input, and the list of its
// weights.
func (m *Model) layout(features, classes int) {
	s := &m.spec
	width, at := s.width(), features
	if s.projects() {
		e := m.stage("encoder", newLinear(*s, Place{In: at, Out: width}), 0, at, width)
		if s.typed() {
			e.activate = tensor.ReLU
		}
		if s.Model == "gcnii" {
			e.activate, e.info.CarryOut = tensor.ReLU, width
		}
		at = width
	}
	hops := 1
	if s.Model == "mlp" {
		hops = 0
	}
	for k := range s.Layers {
		place := Place{Layer: k, In: at, Out: width, Last: k == s.Layers-1}
		if place.Last && s.Head == HeadNone {
			place.Answers, place.Out = true, classes
		}
		st := m.stage(fmt.Sprintf("layers.%d", k), s.convolution()(*s, place), hops, at, place.Out)
		st.layer = k
		if s.preActivated() {
			m.preActivated(st, k > 0)
		} else if !place.Answers {
			m.activated(st)
		}
		m.carries(st, place)
		at = place.Out
	}
	if s.Head == HeadLinear {
		m.head(at, classes)
	}
}

// stage adds a stage with its convolution only.
func (m *Model) stage(name string, conv Conv, hops, in, out int) *stage {
	st := &stage{
		info: StageInfo{Name: name, Hops: hops, In: in, Out: out},
		conv: conv, first: len(m.params), bias: -1,
		preNorm: -1, residual: -1, norm: -1, layer: -1,
	}
	for _, w := range conv.Weights() {
		if w.Name == Bias {
			st.bias = len(m.params)
		}
		m.param(name+"."+w.Name, w)
	}
	m.hops += hops
	m.stages = append(m.stages, st)
	return st
}

func (m *Model) param(name string, w Weight) {
	m.params = append(m.params, Param{Name: name, Rows: w.Rows, Cols: w.Cols, Offset: m.size})
	m.initial = append(m.initial, w.Initial)
	m.size += w.Rows * w.Cols
}

// normed adds the two weights of a LayerNorm.
func (m *Model) normed(name string, width int) int {
	first := len(m.params)
	m.param(name+".weight", Weight{Rows: 1, Cols: width, Initial: Ones})
	m.param(name+".bias", Weight{Rows: 1, Cols: width, Initial: Zeros})
	return first
}

// activated adds what follows a hidden convolution.
func (m *Model) activated(st *stage) {
	s, name := &m.spec, st.info.Name
	if s.Residual {
		st.residual = len(m.params)
		m.param(name+".residual.weight", Weight{Rows: st.info.In, Cols: st.info.Out, Initial: Fan(st.info.In)})
		m.param(name+".residual.bias", Weight{Rows: 1, Cols: st.info.Out, Initial: Fan(st.info.In)})
	}
	if s.Norm == NormLayer {
		st.norm = m.normed(name+".norm", st.info.Out)
	}
	st.activate, st.drop = tensor.ReLU, s.Dropout
	switch {
	case s.typed():
		st.activate = tensor.Linear
	case s.each() == "gat" && s.Head == HeadNone:
		st.activate = tensor.ELU
	}
}

// preActivated sets up a layer of that frame: what precedes it, and the skip connection.
// The first layer has neither.
func (m *Model) preActivated(st *stage, inner bool) {
	if !inner {
		return
	}
	st.before, st.skip = true, true
	st.preNorm = m.normed(st.info.Name+".norm", st.info.In)
	st.preRelu, st.preDrop = true, m.spec.Dropout
}

// carries sets the columns carried beside a layer's rows.
func (m *Model) carries(st *stage, p Place) {
	switch s := &m.spec; {
	case s.Model == "gcnii":
		// The first representation is carried without dropout; the first layer sees it
		// with dropout.
		if p.Layer == 0 {
			st.before, st.preDrop = true, s.Dropout
		}
		st.info.CarryIn = st.info.In
		if !p.Last {
			st.info.CarryOut = st.info.Out
		}
	case s.Jump == JumpCat:
		st.info.CarryIn, st.info.CarryOut = p.Layer*p.Out, (p.Layer+1)*p.Out
	case s.Jump == JumpMax:
		st.info.CarryIn, st.info.CarryOut = min(p.Layer, 1)*p.Out, p.Out
	}
}

// head adds the linear map that computes the logits.
func (m *Model) head(width, classes int) {
	s, in := &m.spec, width
	if s.Jump == JumpCat {
		in *= s.Layers
	}
	st := m.stage("head", newLinear(*s, Place{In: in, Out: classes}), 0, width, classes)
	if s.Jump != JumpNone {
		st.jump, st.info.CarryIn = s.Jump, in
	}
	if s.preActivated() {
		m.preActivated(st, true)
		st.skip = false
	}
}

// Split returns the same model, with the same weights, in which the first layer's rows are
// multiplied by its weight in a stage of their own and added up along edges in the next. So
// rows that several parts of a graph see are multiplied once, and the narrower products
// travel. It returns the model itself where that is no gain or can't be: only a layer that
// multiplies each row by one weight, by which it gets narrower, can be split.
func (m *Model) Split() *Model {
	st := m.stages[0]
	conv, ok := st.conv.(*gcn)
	if !ok || conv.out >= conv.in || st.before || st.skip || st.residual >= 0 || m.spec.Jump != JumpNone {
		return m
	}
	product, sums := *st, *st
	product.conv, product.bias, product.norm = &multiplied{in: conv.in, out: conv.out}, -1, -1
	product.activate, product.drop, product.layer = tensor.Linear, 0, -1
	product.info.Hops, product.info.Out = 0, conv.out
	sums.conv, sums.info.In = &summed{}, conv.out
	split := *m
	split.split = 1
	split.stages = slices.Concat([]*stage{&product, &sums}, m.stages[1:])
	return &split
}

// IsSplit reports whether the first two stages are one layer (see Split).
func (m *Model) IsSplit() bool { return m.split > 0 }
