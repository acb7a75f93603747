// Package safetensors reads and writes the .safetensors format: a length, a JSON header,
// and contiguous tensors. Files are mapped, and tensors are viewed in place without a
// copy.
//
// It knows nothing of graphs or models, and only the element types that hopmesh stores.
package safetensors

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// DType is the type of a tensor's elements, by its name in the format.
type DType string

// The element types that hopmesh stores.
const (
	F32  DType = "F32"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	U8   DType = "U8"
)

// maxHeader bounds the JSON header: thousands of tensors fit, and a garbage length does
// not.
const maxHeader = 16 << 20

// metadataKey is the header's key for the metadata strings.
const metadataKey = "__metadata__"

// size returns the bytes of one element, or 0 for an unknown type.
func (d DType) size() int64 {
	switch d {
	case I64:
		return 8
	case F32, I32:
		return 4
	case BF16:
		return 2
	case U8:
		return 1
	}
	return 0
}

// A Tensor is a tensor's entry in the header.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64
}

var errTooLarge = errors.New("is larger than any file")

// bytes returns the length of the tensor's data.
func (t Tensor) bytes() (int64, error) {
	n := t.DType.size()
	if n == 0 {
		return 0, fmt.Errorf("tensor %q has the unknown type %q", t.Name, t.DType)
	}
	if slices.Contains(t.Shape, 0) {
		// A zero dimension makes the tensor empty, whatever the others are.
		n = 0
	}
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q has the negative dimension %d", t.Name, d)
		}
		if d > 0 && n > math.MaxInt64/d {
			return 0, fmt.Errorf("tensor %q %w", t.Name, errTooLarge)
		}
		n *= d
	}
	return n, nil
}
