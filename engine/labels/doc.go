// Package labels requests the labels of seed vertices from their owners, and serves those
// of local ones. A label lies with its shard and nowhere else: a step brings those of the
// remote seed vertices that it computes, in one question to each owner.
//
// A question is the ids of vertices, four bytes each; the answer is their labels in the
// same order, four bytes each.
package labels
