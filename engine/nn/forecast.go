package nn

import (
	"reflect"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/sample"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/dry"
)

// A Size is the size of a block.
type Size = sample.Size

// An InputSize is the size of the features: one row per source of the first block.
type InputSize struct {
	Rows    int
	Sparse  bool
	Entries int // of sparse features
}

// Forecast returns how many bytes of an arena a forward and backward pass over blocks of
// these sizes takes with F32 numbers, and how many a device may use beside it. It is
// exact: it predicts the order in which each layer multiplies and aggregates. It is too much
// only where a hetero leaves out relations that reach no target, and where an rgcn computes
// blocks of about these sizes in a way that takes more (see beyond).
func (m *Model) Forecast(in InputSize, blocks []Size) (arena, beside int) {
	arena, beside = m.exactly(in, blocks)
	if rows, others := beyond(m, in, blocks); others != nil {
		more, aside := m.exactly(rows, others)
		arena, beside = max(arena, more), max(beside, aside)
	}
	return arena, beside
}

// exactly is Forecast of these sizes and no others.
func (m *Model) exactly(in InputSize, blocks []Size) (arena, beside int) {
	device := dry.New(tensor.F32)
	rows := device.Arena()
	p := m.NewPass(device, rows)
	p.Train = true
	p.Weights = unseen(1, m.size)
	p.Gradients = p.Weights
	var x Input
	if in.Sparse {
		x.Sparse = sized(in.Rows, m.stages[0].info.In, in.Entries)
	} else {
		x.Dense = unseen(in.Rows, m.stages[0].info.In)
	}
	x.Vertices = make([]uint32, in.Rows)
	p.Backward(p.Forward(Unseen(blocks), x))
	return rows.Peak(), device.Beside()
}

// ForecastStage returns how many bytes of an arena Stage takes. b is the size of its
// block, or of its rows if it has no block.
func (m *Model) ForecastStage(stage int, in InputSize, b Size) int {
	device := dry.New(tensor.F32)
	arena := device.Arena()
	p := &Pass{model: m, device: device, arena: arena} // one stage alone has no use for the others
	p.Weights = unseen(1, m.size)
	info := &m.stages[stage].info
	var block *sample.Block
	if info.Hops > 0 {
		block = &sample.Block{CSR: *sized(b.Targets, b.Sources, b.Entries)}
	}
	var x Input
	var rows, carry tensor.Matrix
	switch {
	case stage > 0:
		rows = unseen(b.Sources, info.In)
	case in.Sparse:
		x.Sparse = sized(b.Sources, info.In, in.Entries)
	default:
		x.Dense = unseen(b.Sources, info.In)
	}
	if info.CarryIn > 0 {
		carry = unseen(b.Sources, info.CarryIn)
	}
	p.Stage(stage, block, x, rows, carry)
	return arena.Peak()
}

// ForecastCarry returns how many bytes of an arena Carry takes.
func (m *Model) ForecastCarry(stage int, in InputSize) int {
	p, arena := m.counting()
	x, rows := m.sizedInput(stage, in)
	p.Carry(stage, x, rows)
	return arena.Peak()
}

// ForecastSum returns how many bytes of an arena Sum takes, and how many a device may use
// beside it. in is the size of the targets' input.
func (m *Model) ForecastSum(stage int, in InputSize, b Size) (arena, beside int) {
	p, counted := m.counting()
	info := &m.stages[stage].info
	d, _ := m.Divide(stage, in.Sparse)
	if d.Carried == 0 {
		d.Carried = info.In
	}
	var carry tensor.Matrix
	if info.CarryIn > 0 {
		carry = unseen(b.Targets, info.CarryIn)
	}
	x, rows := m.sizedInput(stage, in)
	block := &sample.Block{CSR: tensor.CSR{Rows: b.Targets, Cols: b.Sources, There: &tensor.There{Entries: b.Entries}}}
	p.Sum(stage, block, x, rows, unseen(b.Sources, d.Carried), carry)
	return counted.Peak(), p.device.(*dry.Device).Beside()
}

// Like returns the first stage that takes as much memory as a stage of the same size does.
func (m *Model) Like(stage int) int {
	type shape struct {
		info                                           StageInfo
		conv                                           reflect.Type
		bias, before, preNorm, preRelu, skip, residual bool
		norm, drops, encodes                           bool
		activate                                       tensor.Activation
		jump                                           string
	}
	of := func(at int) shape {
		s := m.stages[at]
		info := s.info
		info.Name = ""
		return shape{
			info: info, conv: reflect.TypeOf(s.conv), bias: s.bias >= 0, before: s.before, preNorm: s.preNorm >= 0, preRelu: s.preRelu, skip: s.skip,
			residual: s.residual >= 0, norm: s.norm >= 0, drops: s.drop > 0 || s.preDrop > 0, encodes: s.layer < 0, activate: s.activate, jump: s.jump,
		}
	}
	for at := 1; at < stage; at++ {
		if of(at) == of(stage) {
			return at
		}
	}
	return stage
}

// counting returns a pass that only counts memory.
func (m *Model) counting() (*Pass, *dry.Arena) {
	device := dry.New(tensor.F32)
	arena := device.Arena()
	return &Pass{model: m, device: device, arena: arena, Weights: unseen(1, m.size)}, arena
}

// sizedInput returns rows of this size for a stage.
func (m *Model) sizedInput(stage int, in InputSize) (x Input, rows tensor.Matrix) {
	columns := m.stages[stage].info.In
	switch {
	case stage > 0:
		return x, unseen(in.Rows, columns)
	case in.Sparse:
		return Input{Sparse: sized(in.Rows, columns, in.Entries)}, rows
	}
	return Input{Dense: unseen(in.Rows, columns)}, rows
}

// nowhere is the address of rows that are never read.
var nowhere float32

func unseen(rows, cols int) tensor.Matrix {
	return tensor.Over(tensor.F32, rows, cols, cols, unsafe.Pointer(&nowhere))
}

// sized returns a CSR of this size without entries.
func sized(rows, cols, entries int) *tensor.CSR {
	g := &tensor.CSR{Rows: rows, Cols: cols, Indptr: make([]int64, rows+1)}
	g.Indptr[rows] = int64(entries)
	return g
}

// Unseen returns blocks of these sizes without edges, for passes on a device that only
// counts. They have no arrays, as if these were in a device's memory, and share their
// vertices: a model may have very many hops.
func Unseen(sizes []Size) []sample.Block {
	most := 0
	for _, z := range sizes {
		most = max(most, z.Sources)
	}
	vertices, blocks := make([]uint32, most), make([]sample.Block, len(sizes))
	for i, z := range sizes {
		blocks[i] = sample.Block{
			CSR:      tensor.CSR{Rows: z.Targets, Cols: z.Sources, There: &tensor.There{Entries: z.Entries}},
			Vertices: vertices[:z.Sources],
		}
	}
	return blocks
}
