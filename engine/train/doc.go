// Package train trains a model on the shards of this machine, alone or with the other
// nodes of a job, which hold the others: batches in, gradients and updates, exact
// evaluation, checkpoints from which it goes on.
//
// What is learnt is a pure function of the recipe and the graph: not of threads, nor of
// how often it was interrupted, nor, but for the last digits of sums, of how many nodes
// share it; where the recipe says deterministic, not even for those.
//
// A run may train several models at once, which is a sweep: what a step reads is sampled
// and gathered once for all of them, and each learns the bits that it learns alone.
package train
