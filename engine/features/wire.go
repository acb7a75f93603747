package features

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/graph"
)

// A Form is the encoding of rows sent between nodes; all nodes of a job use the same.
//
// A dense row is its elements, F32 or BF16. If rows are scaled, the scale follows as F32
// at a multiple of four bytes: a row stored as BF16 travels as BF16, and every device
// computes the same bits as from a local row. A sparse row is the number of its entries,
// its scale if rows are scaled, the columns (two bytes each if that is enough, else
// four), and the values unless all are 1. Everything is little-endian.
type Form struct {
	columns int
	sparse  bool
	half    bool // elements or values are BF16
	scaled  bool
	ones    bool // of sparse rows
	how     int  // index in Hows
}

const scaleBytes = 4

// Form returns the form of the store's rows. wire is bf16, which rounds the elements of
// dense rows, or empty, which sends them as stored.
func (s *Store) Form(wire string) (Form, error) {
	if wire != "" && wire != "bf16" {
		return Form{}, fmt.Errorf("features can't travel as %q: it is bf16, or nothing for as they are stored", wire)
	}
	return Form{
		columns: s.columns, sparse: s.sparse, scaled: s.scaled, ones: s.ones, how: slices.Index(Hows, s.how),
		half: !s.learnt && (s.shards[0].DType == graph.BF16 || !s.sparse && (s.binary || wire == "bf16")),
	}, nil
}

// Sparse reports whether rows are sparse.
func (f Form) Sparse() bool { return f.sparse }

// Code returns a number that differs between forms whose rows are encoded differently.
func (f Form) Code() uint32 {
	code := uint32(f.how)
	for _, is := range []bool{f.sparse, f.half, f.scaled, f.ones} {
		code <<= 1
		if is {
			code |= 1
		}
	}
	return code
}

// RowBytes returns the size of a dense row, or the maximum size of a sparse one.
func (f Form) RowBytes() int {
	switch {
	case f.sparse:
		return f.head() + f.columns*f.entry()
	case f.half && f.scaled:
		return 2*(f.columns+f.columns&1) + scaleBytes
	case f.half:
		return 2 * f.columns
	case f.scaled:
		return 4*f.columns + scaleBytes
	}
	return 4 * f.columns
}

// head returns the size of a sparse row without its entries.
func (f Form) head() int {
	if f.scaled {
		return 4 + scaleBytes
	}
	return 4
}

// column returns the size of an entry's column.
func (f Form) column() int {
	if f.columns <= 1<<16 {
		return 2
	}
	return 4
}

// entry returns the size of an entry of a sparse row.
func (f Form) entry() int {
	switch {
	case f.ones:
		return f.column()
	case f.half:
		return f.column() + 2
	}
	return f.column() + 4
}

// Stored returns the row of a local vertex as it is sent, in the memory of its shard; nil: it
// is stored otherwise, or may change.
func (s *Store) Stored(f Form, v uint32) []byte {
	if f.sparse || f.scaled || s.learnt {
		return nil
	}
	shard, row := s.shardOf(v, 0)
	at, n := row*s.columns, s.columns
	switch x := &s.stored[shard]; {
	case f.half && x.half != nil:
		return bytesOf(x.half[at:][:n])
	case !f.half && x.half == nil:
		return bytesOf(x.whole[at:][:n])
	}
	return nil
}

// Append appends the row of a local vertex.
func (s *Store) Append(to []byte, f Form, v uint32) []byte {
	shard, row := s.shardOf(v, 0)
	if f.sparse {
		return s.appendSparse(to, f, shard, row)
	}
	at, n := row*s.columns, s.columns
	switch x := &s.stored[shard]; {
	case x.half == nil && f.half:
		for _, e := range x.whole[at:][:n] {
			half := [1]uint16{}
			graph.ToBF16(half[:], []float32{e})
			to = binary.LittleEndian.AppendUint16(to, half[0])
		}
	case x.half == nil:
		to = append(to, bytesOf(x.whole[at:][:n])...)
	default:
		to = append(to, bytesOf(x.half[at:][:n])...)
	}
	if f.scaled {
		if f.half && n&1 == 1 {
			to = append(to, 0, 0)
		}
		to = appendFloat(to, s.scale[shard][row])
	}
	return to
}

func (s *Store) appendSparse(to []byte, f Form, shard, row int) []byte {
	rows := s.shards[shard].Sparse
	from, end := rows.Indptr[row], rows.Indptr[row+1]
	to = binary.LittleEndian.AppendUint32(to, uint32(end-from))
	if f.scaled {
		to = appendFloat(to, s.scale[shard][row])
	}
	if f.column() == 2 {
		for _, column := range rows.Columns[from:end] {
			to = binary.LittleEndian.AppendUint16(to, uint16(column))
		}
	} else {
		to = append(to, bytesOf(rows.Columns[from:end])...)
	}
	switch {
	case f.ones:
	case f.half:
		to = append(to, bytesOf(rows.ValuesBF16[from:end])...)
	default:
		to = append(to, bytesOf(rows.Values[from:end])...)
	}
	return to
}

func appendFloat(to []byte, f float32) []byte {
	return binary.LittleEndian.AppendUint32(to, math.Float32bits(f))
}

// bytesOf returns the memory of a slice. Rows travel in the byte order of the machines
// that hopmesh runs on, as in shard files.
func bytesOf[E float32 | uint16 | int32](x []E) []byte {
	var e E
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(e)))
}
