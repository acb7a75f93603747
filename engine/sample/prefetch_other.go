//go:build !amd64 && !arm64

package sample

import "unsafe"

// prefetch does nothing on this architecture.
func prefetch(unsafe.Pointer, *uint32, int, uint) {}

// prefetchHashed does nothing on this architecture.
func prefetchHashed(unsafe.Pointer, *uint32, int, uint32, uint) {}
