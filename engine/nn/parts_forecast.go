package nn

import (
	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
)

// ForecastPart returns how many bytes of an arena the stages from first to end
// (exclusive) take in a forward and backward pass in parts, for a part whose block has
// this size, and how many of the pass's Scratch. If the first stage is among them, in is the
// size of its features.
func (m *Model) ForecastPart(first, end int, in InputSize, b Size) (pass, scratch int) {
	device, none := dry.New(tensor.F32), tensor.Matrix{}
	arena, shared := device.Arena(), device.Arena()
	p := m.NewPass(device, arena)
	p.Scratch = shared
	p.Train = true
	p.Weights = unseen(1, m.size)
	p.Gradients = p.Weights
	p.Begin()
	block := &sample.Block{CSR: *sized(b.Targets, b.Sources, b.Entries), Vertices: make([]uint32, b.Sources)}
	var x, carry, dcarry tensor.Matrix
	if first > 0 {
		x = unseen(b.Targets, m.stages[first].info.In)
	}
	if m.spec.Model == "gcnii" {
		carry = unseen(b.Targets, m.spec.width())
		dcarry = carry
	}
	for s := first; s < end; s++ {
		var of *sample.Block
		var input Input
		rows, seen := b.Targets, none
		if m.stages[s].info.Hops > 0 {
			of, rows = block, b.Sources
		}
		if s == 0 {
			input = Input{Vertices: block.Vertices[:rows]}
			if in.Sparse {
				input.Sparse = sized(rows, m.stages[0].info.In, in.Entries)
			} else {
				input.Dense = unseen(rows, m.stages[0].info.In)
			}
		} else {
			seen = p.Enter(s, x, block.Vertices[:b.Targets])
			if of != nil {
				seen = p.Seen(s, block)
			}
		}
		x = p.Layer(s, of, input, seen, carry)
		if s > 0 && of != nil && !p.Reads(s) {
			p.Drop(seen)
		}
	}
	dy := arena.Alloc(device.Type(), x.Rows, x.Cols)
	for s := end - 1; s >= first; s-- {
		dseen := p.Back(s, dy, dcarry, s > 0)
		if s > 0 {
			dy = dseen.RowRange(0, b.Targets)
			if m.stages[s].info.Hops > 0 {
				p.Drop(dseen) // it is added up outside
				dy = unseen(dy.Rows, dy.Cols)
			}
			p.Leave(s, dy)
		}
	}
	return arena.Peak(), shared.Peak()
}
