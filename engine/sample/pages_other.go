//go:build !linux

package sample

// large does nothing: huge pages are used on Linux only.
func large([]byte) {}
