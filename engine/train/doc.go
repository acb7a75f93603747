// Package train trains a model on the shards of this machine, alone or with the other
// nodes of a job, which hold the other shards. It runs batches, gradients and updates,
// and writes checkpoints to resume from.
//
// The result is a pure function of the recipe and the graph. It does not depend on
// threads or interruptions and, but for the last digits of sums, not on how many nodes
// share the run. With deterministic recipes it does not depend on nodes at all.
//
// A run may train several models at once as a sweep: the input of a step is sampled and
// gathered once for all of them, and each learns the same bits as alone.
package train
