// Package vicinity fetches the part of other nodes' shards that a node sees which
// trains in isolation: in-edges of vertices, and rows of features. They are fetched
// between epochs, or ahead while an epoch trains, and count as shards. Local rows of
// features are never fetched again, and edges only from other ranges.
//
// A question for edges names runs of vertices and, where only some sources matter, the
// ranges that these lie in. Its answer has whole rows in the order of the question: as
// many as fit, at least one, and the rest is requested again. Rows of features are
// fetched by engine/gather. What comes lies in a Vault, in files, and only some of it at a
// time is in memory.
package vicinity
