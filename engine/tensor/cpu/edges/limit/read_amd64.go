package limit

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
	"github.com/hopmesh/hopmesh/engine/tensor/cpu/family"
)

// read adds up the rows of n indices, which are followed by more to prefetch.
func read(x tensor.Matrix, indices []int32, n, lines, ahead int) {
	if family.Current() == family.Generic {
		readGeneric(x, indices[:n])
		return
	}
	var sum [8]float32
	gather(&sum[0], (*byte)(x.Base()), x.Stride*x.Type.Bytes(), unsafe.SliceData(indices), n, lines, ahead)
	sink.Lock()
	sink.sum += sum[0]
	sink.Unlock()
}
