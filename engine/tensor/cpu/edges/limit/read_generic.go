package limit

import (
	"unsafe"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// readGeneric adds up rows of numbers of any type.
func readGeneric(x tensor.Matrix, indices []int32) {
	bytes, stride := x.Cols*x.Type.Bytes(), x.Stride*x.Type.Bytes()
	var sum [4]uint64
	for _, i := range indices {
		row := unsafe.Slice((*byte)(unsafe.Add(x.Base(), int(i)*stride)), bytes)
		for len(row) >= 32 {
			words := (*[4]uint64)(unsafe.Pointer(&row[0]))
			sum[0] += words[0]
			sum[1] += words[1]
			sum[2] += words[2]
			sum[3] += words[3]
			row = row[32:]
		}
		for _, b := range row {
			sum[0] += uint64(b)
		}
	}
	sink.Lock()
	sink.sum += float32(sum[0] + sum[1] + sum[2] + sum[3])
	sink.Unlock()
}
