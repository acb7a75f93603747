package evaluate

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/evaluate/overflow"
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// A table holds rows of all vertices that this node computes, and perhaps of the halo: in
// memory or, where that is too small, in a file.
type table struct {
	x      tensor.Matrix
	device tensor.Device
	arena  tensor.Arena // in memory
	file   *overflow.File
	buffer []byte // of chunkRows rows
}

func newTable(d tensor.Device, rows, cols int, inFile bool, dir string) (*table, error) {
	t := &table{device: d}
	if rows == 0 || cols == 0 {
		return t, nil
	}
	if !inFile {
		arena, err := d.NewArena(rows * cols * d.Type().Bytes())
		if err != nil {
			return nil, err
		}
		t.arena, t.x = arena, arena.Alloc(d.Type(), rows, cols)
		return t, nil
	}
	f, err := overflow.New(dir, int64(rows)*int64(cols)*int64(d.Type().Bytes()))
	if err != nil {
		return nil, err
	}
	t.file, t.x = f, tensor.Over(d.Type(), rows, cols, cols, unsafe.Pointer(unsafe.SliceData(f.Bytes())))
	return t, nil
}

// write sets rows from first on.
func (t *table) write(first int, y tensor.Matrix) error {
	if y.Rows == 0 || y.Cols == 0 {
		return nil
	}
	if t.file == nil {
		t.device.Combine(t.x.RowRange(first, y.Rows), 1, y, 0, tensor.Matrix{})
		return nil
	}
	for row := 0; row < y.Rows; row += chunkRows {
		some := y.RowRange(row, min(chunkRows, y.Rows-row))
		t.buffer = plain.Grow(t.buffer, some.Rows*some.Cols*t.x.Type.Bytes())
		plain.Read(t.device, t.buffer, some)
		if err := t.writeBytes(first+row, t.buffer); err != nil {
			return err
		}
	}
	return nil
}

// memory returns the bytes of n rows from first on, if they lie in this process's memory as
// they travel.
func (t *table) memory(first, n int) ([]byte, bool) {
	if _, foreign := t.device.(tensor.Foreign); foreign || t.file != nil || t.x.Type != tensor.F32 {
		return nil, false
	}
	return plain.Bytes(t.x.RowRange(first, n).F32()), true
}

// writeBytes sets rows from first on to what plain.Read has made of them.
func (t *table) writeBytes(first int, rows []byte) error {
	if len(rows) == 0 {
		return nil
	}
	row := t.x.Cols * t.x.Type.Bytes()
	if t.file == nil {
		plain.Write(t.device, t.x.RowRange(first, len(rows)/row), rows)
		return nil
	}
	return t.file.Write(rows, int64(first)*int64(row))
}

func (t *table) close() (err error) {
	if t == nil {
		return nil
	}
	if t.arena != nil {
		t.arena.Close()
	}
	err = t.file.Close()
	*t = table{}
	return err
}
