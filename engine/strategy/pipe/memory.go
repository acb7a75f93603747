package pipe

import (
	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/plain"
)

// number is what is computed with.
type number interface{ ~float32 | ~float64 }

// numbers, room, read, write and raw are plain's.
func numbers[T number](b []byte) []T { return plain.Numbers[T](b) }

func room(bytes int) []byte { return plain.Room(bytes) }

func read(d tensor.Device, to []byte, m tensor.Matrix) { plain.Read(d, to, m) }

func write(d tensor.Device, m tensor.Matrix, from []byte) { plain.Write(d, m, from) }

func raw[T number](s []T) []byte { return plain.Bytes(s) }

// bytes is how many a matrix takes where it travels.
func bytes(m tensor.Matrix) int { return m.Rows * m.Cols * m.Type.Bytes() }
