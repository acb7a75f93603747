// Package sample draws mini-batches: from seed vertices (roots) it samples neighbours hop
// by hop and returns them as blocks.
//
// What is drawn for a vertex depends only on (seed, epoch, step, hop, vertex), so every
// node draws the same, on any number of threads and for any grouping of roots.
package sample
