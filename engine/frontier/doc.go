// Package frontier asks the owners of vertices for their neighbours, hop by hop, where
// a node does not hold the edges of the whole graph; and serves those that are here.
//
// A question is about one hop of one step, in the fields of strategy.Query: Epoch, Step,
// and the hop in Part. Its body is the hop's fan-out and the vertices, numbers of four
// bytes. The answer is of the first of them, as many as fit: who asked asks again for
// the rest.
package frontier
