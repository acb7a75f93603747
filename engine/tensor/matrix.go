package tensor

import (
	"fmt"
	"unsafe"
)

// Type is the type of a matrix's elements.
type Type uint8

// The element types. Features may be stored as BF16; all sums are F32, or F64 on the
// reference device. I32 holds the choices of AggregateMax.
const (
	F32 Type = iota
	F64
	BF16
	I32
)

// Bytes is the size of one element.
func (t Type) Bytes() int {
	switch t {
	case F64:
		return 8
	case BF16:
		return 2
	}
	return 4
}

func (t Type) String() string { return [...]string{"f32", "f64", "bf16", "i32"}[t] }

// A Matrix is a row-major view of a device's memory. It is a value: copying it copies no
// elements. The zero Matrix stands for no matrix.
type Matrix struct {
	Rows, Cols int
	Stride     int // elements from one row to the next, at least Cols
	Type       Type
	base       unsafe.Pointer
}

// Over returns a matrix over memory owned by the caller.
func Over(t Type, rows, cols, stride int, base unsafe.Pointer) Matrix {
	return Matrix{Rows: rows, Cols: cols, Stride: stride, Type: t, base: base}
}

// OverF32 returns a matrix over a slice of rows*cols elements.
func OverF32(rows, cols int, data []float32) Matrix {
	if len(data) != rows*cols {
		panic(fmt.Sprintf("tensor: %d elements for %d x %d", len(data), rows, cols))
	}
	return Over(F32, rows, cols, cols, unsafe.Pointer(unsafe.SliceData(data)))
}

// OverBF16 returns a matrix over a slice of rows*cols elements.
func OverBF16(rows, cols int, data []uint16) Matrix {
	if len(data) != rows*cols {
		panic(fmt.Sprintf("tensor: %d elements for %d x %d", len(data), rows, cols))
	}
	return Over(BF16, rows, cols, cols, unsafe.Pointer(unsafe.SliceData(data)))
}

// None reports whether this is the zero Matrix.
func (m Matrix) None() bool { return m.base == nil && m.Rows == 0 && m.Cols == 0 }

// Base returns the address of the first element, in the device's memory.
func (m Matrix) Base() unsafe.Pointer { return m.base }

// span returns the number of elements from the first to the last.
func (m Matrix) span() int {
	if m.Rows == 0 || m.Cols == 0 {
		return 0
	}
	return (m.Rows-1)*m.Stride + m.Cols
}

func slice[E any](m Matrix, t Type) []E {
	if m.Type != t {
		panic(fmt.Sprintf("tensor: a matrix of %s used as %s", m.Type, t))
	}
	return unsafe.Slice((*E)(m.base), m.span())
}

// F32 returns the elements from the first to the last, including those between rows. It
// is only for devices whose memory is the host's.
func (m Matrix) F32() []float32 { return slice[float32](m, F32) }

// F64 is F32 for another type.
func (m Matrix) F64() []float64 { return slice[float64](m, F64) }

// BF16 is F32 for another type.
func (m Matrix) BF16() []uint16 { return slice[uint16](m, BF16) }

// I32 is F32 for another type.
func (m Matrix) I32() []int32 { return slice[int32](m, I32) }

// View returns the matrix of these rows and columns, over the same memory.
func (m Matrix) View(row, rows, col, cols int) Matrix {
	if row < 0 || rows < 0 || row+rows > m.Rows || col < 0 || cols < 0 || col+cols > m.Cols {
		panic(fmt.Sprintf("tensor: rows %d+%d and columns %d+%d of %d x %d", row, rows, col, cols, m.Rows, m.Cols))
	}
	v := Matrix{Rows: rows, Cols: cols, Stride: m.Stride, Type: m.Type, base: m.base}
	if rows > 0 && cols > 0 {
		v.base = unsafe.Add(m.base, (row*m.Stride+col)*m.Type.Bytes())
	}
	return v
}

// RowRange returns a View of whole rows.
func (m Matrix) RowRange(row, rows int) Matrix { return m.View(row, rows, 0, m.Cols) }

// Reshape returns the same elements in other rows; the matrix must have no gaps between
// rows.
func (m Matrix) Reshape(rows, cols int) Matrix {
	if m.Stride != m.Cols && m.Rows > 1 || rows*cols != m.Rows*m.Cols {
		panic(fmt.Sprintf("tensor: %d x %d (stride %d) as %d x %d", m.Rows, m.Cols, m.Stride, rows, cols))
	}
	return Matrix{Rows: rows, Cols: cols, Stride: cols, Type: m.Type, base: m.base}
}
