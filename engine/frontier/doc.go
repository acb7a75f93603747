// Package frontier requests neighbours from the owners of vertices, hop by hop, where a
// node does not hold the edges of the whole graph; and serves those of local vertices.
//
// A question is about one hop of one step, in the fields of peer.Query: Epoch,
// Step, and the hop in Part. Its body is the hop's fan-out and the vertices, numbers of
// four bytes. The answer covers the first of them, as many as fit: the rest is
// requested again. Another question is for 1/sqrt(degree) of a batch's vertices, where
// blocks are normalised by it.
package frontier
