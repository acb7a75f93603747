//go:build !linux

package mapped

// fetch does nothing: reading fetches the pages.
func fetch([]byte) {}
