//go:build amd64 || arm64

package sample

import "unsafe"

// prefetch prefetches the cache lines of the elements at[0] to at[n-1] of an array at
// base; an element has 1<<shift bytes. It does not wait for memory.
//
//go:noescape
func prefetch(base unsafe.Pointer, at *uint32, n int, shift uint)
