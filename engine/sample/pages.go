package sample

import "unsafe"

// huge is the size of a large page.
const huge = 2 << 20

// inLargePages makes a slice of zeros that is read here and there: where it is
// large, in large pages, so that the processor knows where most of it lies.
func inLargePages[T uint64 | float32](n int) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	if n*size < huge {
		return make([]T, n)
	}
	of := make([]T, n+huge/size)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(of))) % huge / uintptr(size)
	of = of[skip:][:n:n]
	large(unsafe.Slice((*byte)(unsafe.Pointer(&of[0])), n*size/huge*huge))
	return of
}
