// Package slot holds what is prepared of one training step: the groups of seed vertices
// that this node computes, their blocks and input, in memory that is reused, and the
// upload of the input to a device that has memory of its own.
package slot
