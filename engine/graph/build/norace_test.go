//go:build !race

package build

// overhead is how much more memory is used than by the program itself.
const overhead = 1
