package features

import "github.com/hopmesh/hopmesh/engine/tensor"

// window is the number of rows that are converted and copied to a device at once.
const window = 4096

// There returns the store with its dense rows copied to a device's arena. The rows of any
// Far used with it must be on the device, too.
func (s *Store) There(d tensor.Device, a tensor.Arena) *Store {
	t := *s
	t.parts, t.rates = moved(d, a, s.parts, s.here == nil), moved(d, a, s.rates, s.here == nil)
	return &t
}

// ThereBytes returns how much of the arena There takes.
func (s *Store) ThereBytes() (bytes uint64) {
	const ends = 256 // of a matrix
	for _, parts := range [...][]tensor.Part{s.parts, s.rates} {
		for i := range parts {
			x := &parts[i].X
			bytes += ends + uint64(x.Rows)*uint64(x.Cols)*uint64(x.Type.Bytes())
		}
	}
	return bytes
}

// Plain reports whether all rows are here, dense and unscaled, and never change.
func (s *Store) Plain() bool { return !s.sparse && !s.scaled && s.here == nil && !s.learnt }

// Table returns all rows in vertex order, if they are contiguous and not scaled.
func (s *Store) Table() (tensor.Matrix, bool) {
	if !s.Plain() || len(s.parts) != 1 {
		return tensor.Matrix{}, false
	}
	return s.parts[0].X, true
}

// moved returns the parts copied to a device, as one matrix if they are all of the rows.
func moved(d tensor.Device, a tensor.Arena, parts []tensor.Part, all bool) []tensor.Part {
	if len(parts) == 0 {
		return nil
	}
	rows, first := 0, parts[0].X
	for i := range parts {
		rows += parts[i].X.Rows
	}
	var there []tensor.Part
	if all {
		there = []tensor.Part{{X: a.Alloc(first.Type, rows, first.Cols)}}
	}
	for _, p := range parts {
		if all {
			write(d, there[0].X.RowRange(int(p.First), p.X.Rows), p.X)
			continue
		}
		x := a.Alloc(p.X.Type, p.X.Rows, p.X.Cols)
		write(d, x, p.X)
		there = append(there, tensor.Part{First: p.First, X: x})
	}
	return there
}

// write copies rows from the host to a device.
func write(d tensor.Device, to, from tensor.Matrix) {
	if from.Rows == 0 || from.Cols == 0 {
		return
	}
	if from.Type == tensor.F32 {
		d.Write32(to, from.F32())
		return
	}
	some := make([]float32, window*from.Cols)
	for first := 0; first < from.Rows; first += window {
		rows := min(window, from.Rows-first)
		for i, half := range from.RowRange(first, rows).BF16() {
			some[i] = fromBF16(half)
		}
		d.Write32(to.RowRange(first, rows), some[:rows*from.Cols])
	}
}
