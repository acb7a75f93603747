// Package gather fetches the input rows of remote vertices, and serves those of local
// ones: it asks each owner one question for all that is needed at a time, all owners at
// once.
//
// A question is the ids of vertices, four bytes each; the rows and their format are up
// to engine/features (see features.Form). Both sides know the length of an answer of
// dense rows. One of sparse rows may hold fewer than requested, where all would be too
// long, and then the rest is requested again.
package gather
