// Package vicinity brings what a node that trains in isolation sees of the shards of
// others: in-edges of vertices, and rows of features. It is brought between epochs, or
// ahead while an epoch trains, counts as shards, and what is here already is not brought
// again: rows of features never, edges where they were brought from the same ranges.
//
// A question for edges names runs of vertices and, where only some sources matter, the
// ranges that these lie in. Its answer has whole rows in the order asked for: as many as
// fit, one at least, and the rest is asked for again. Rows of features are engine/gather's.
package vicinity
