//go:build amd64 || arm64

package sample

import "unsafe"

// prefetch has the lines fetched in which the elements at[0] to at[n-1] of an array
// at base lie; an element has 1<<shift bytes. It reads nothing else, and waits for
// nothing.
//
//go:noescape
func prefetch(base unsafe.Pointer, at *uint32, n int, shift uint)
