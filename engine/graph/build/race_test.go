//go:build race

package build

// overhead is how much more memory the race detector makes of it.
const overhead = 10
