// Package arrange divides the work of a pipeline: layers into stages, vertices into ways
// and chunks, and both among nodes, which agree on one of several such arrangements.
package arrange
