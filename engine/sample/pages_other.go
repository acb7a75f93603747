//go:build !linux

package sample

// large is for Linux.
func large([]byte) {}
