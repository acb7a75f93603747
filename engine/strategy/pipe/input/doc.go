// Package input holds the features that the first stage of a pipeline reads, those of other
// nodes included.
package input
