//go:build !linux

package direct

import "os"

// open is implemented on Linux only; elsewhere writes go through the page cache.
func open(string) *os.File { return nil }

func inHugePages([]byte) {}
