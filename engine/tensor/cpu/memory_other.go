//go:build !linux

package cpu

import "unsafe"

func reserve(bytes int) ([]byte, error) {
	all := make([]byte, bytes+alignment)
	skip := -uintptr(unsafe.Pointer(&all[0])) & (alignment - 1)
	return all[skip:][:bytes], nil
}

func release([]byte) {}
