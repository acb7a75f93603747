// Package labels requests the labels of seed vertices from their owners, and serves those
// of local ones. A label lies with its shard and nowhere else: a step brings those of the
// remote seed vertices that it computes, in one question to each owner.
//
// A question is the ids of vertices, four bytes each; the answer is their targets in the same
// order, each so many 32-bit words: the class, or the bits of a number for each column.
package labels
