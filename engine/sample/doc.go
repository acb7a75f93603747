// Package sample turns roots into blocks: for each vertex of a batch the neighbours
// it hears from, hop by hop.
//
// What is drawn for a vertex depends on (seed, epoch, step, hop, vertex) and on
// nothing else, so that any node, on any number of threads and for any grouping of
// roots, draws the same.
package sample
