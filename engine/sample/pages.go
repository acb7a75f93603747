package sample

import "unsafe"

// huge is the size of a huge page.
const huge = 2 << 20

// inLargePages returns a zeroed slice for random reads, in huge pages if it is large,
// which saves TLB misses.
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
