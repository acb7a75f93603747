package p3

import "math/bits"

// Forecast estimates the bytes of a prepared batch's step, beside the batch itself: for
// computing, and for exchanging with other nodes.
func (f *Front) Forecast(b *Batch) uint64 {
	row := uint64(f.cols * f.device.Type().Bytes())
	own, all, rows, sources, widest, width := uint64(b.nodes[f.self].rows), uint64(0), 0, 0, 0, uint64(0)
	for _, g := range b.groups {
		rows, sources = max(rows, g.block.Rows), max(sources, g.block.Cols)
		all += uint64(g.block.Rows)
	}
	for i := range f.terms {
		widest = max(widest, f.terms[i].Param.Cols)
		width += uint64(f.terms[i].Param.Rows * f.terms[i].Param.Cols)
	}
	spans := 0
	for _, s := range f.spans {
		spans += len(s)
	}
	element := uint64(f.device.Type().Bytes())
	levels := uint64(1 + bits.Len(uint(max(f.numbers, len(f.leaves)))))
	told := 3*own + all + uint64(len(f.hangar)+len(f.air))*(uint64(spans)*own+uint64(len(f.spans[f.self]))*all)
	n := told*row + levels*max(uint64(rows)*row, uint64(f.width(f.self))*element) + 2*uint64(rows)*row + 2*width*element
	if f.columns.sparse {
		n += uint64(sources*widest) * element
	}
	if !f.resample {
		n += 2 * uint64(bytesOfBlocks(b.nodes[f.self].given))
	}
	return n
}
