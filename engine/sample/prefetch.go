//go:build amd64 || arm64

package sample

import "unsafe"

// prefetch prefetches the cache lines of the elements at[0] to at[n-1] of an array at
// base; an element has 1<<shift bytes. It does not wait for memory.
//
//go:noescape
func prefetch(base unsafe.Pointer, at *uint32, n int, shift uint)

// prefetchHashed prefetches the cache lines of the elements of 8 bytes at which a table
// looks for ids: ids[i]*factor>>shift, in 32 bits; shift is below 32.
//
//go:noescape
func prefetchHashed(base unsafe.Pointer, ids *uint32, n int, factor uint32, shift uint)
