// Package targets stores targets with columns in shard files: it lays out their tensor, writes
// rows of it, and checks those that other nodes send.
package targets

import (
	"errors"
	"math"

	"github.com/hopmesh/hopmesh/engine/graph"
	"github.com/hopmesh/hopmesh/engine/graph/safetensors"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// RowBytes returns how many bytes the target of a vertex takes in a file: also a class.
func RowBytes(m *graph.Meta) int {
	switch m.Targets {
	case graph.YesOrNo:
		return m.Classes
	case graph.Numbers:
		return 4 * m.Classes
	}
	return 4
}

// Tensor describes the targets of so many vertices.
func Tensor(m *graph.Meta, vertices int64) safetensors.Tensor {
	switch columns := int64(m.Classes); m.Targets {
	case graph.YesOrNo:
		return safetensors.Tensor{Name: "targets", DType: safetensors.U8, Shape: []int64{vertices, columns}}
	case graph.Numbers:
		return safetensors.Tensor{Name: "targets", DType: safetensors.F32, Shape: []int64{vertices, columns}}
	}
	return safetensors.Tensor{Name: "labels", DType: safetensors.I32, Shape: []int64{vertices}}
}

// Late reports whether targets stand behind the features in a file, where elements are the
// smaller the later they come.
func Late(m *graph.Meta) bool { return m.Targets == graph.YesOrNo }

// Write gives the targets of some vertices to out, in pieces that may lie in buf.
func Write(src graph.Source, vertices []uint32, buf []byte, out func([]byte) error) error {
	m, columns, labels := src.Meta(), src.Targets(), src.Labels()
	row := RowBytes(&m)
	all := columns.YesOrNo
	switch m.Targets {
	case graph.Numbers:
		all = plain.Bytes(columns.Numbers)
	case graph.OneClass:
		all = plain.Bytes(labels)
	}
	held := buf[:0]
	for _, v := range vertices {
		if len(held)+row > cap(held) && len(held) > 0 {
			if err := out(held); err != nil {
				return err
			}
			held = buf[:0]
		}
		held = append(held, all[int(v)*row:][:row]...) // grows only for a row longer than the buffer
	}
	return out(held)
}

var errCell = errors.New("a message has targets that can't be")

// Check returns an error unless a piece of some rows of targets may be one.
func Check(m *graph.Meta, piece []byte) error {
	if m.Targets != graph.YesOrNo && len(piece)%4 != 0 {
		return errCell
	}
	switch m.Targets {
	case graph.YesOrNo:
		for _, cell := range piece {
			if cell > 1 && cell != graph.Missing {
				return errCell
			}
		}
	case graph.Numbers:
		for _, cell := range words(piece) {
			if math.IsInf(float64(math.Float32frombits(cell)), 0) {
				return errCell
			}
		}
	default:
		for _, label := range words(piece) {
			if label := int32(label); label < graph.NoLabel || int64(label) >= int64(m.Classes) {
				return errCell
			}
		}
	}
	return nil
}

// words returns the 32-bit words of a piece, which may lie anywhere in memory.
func words(piece []byte) []uint32 {
	list := make([]uint32, len(piece)/4)
	copy(plain.Bytes(list), piece)
	return list
}
