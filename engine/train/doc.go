// Package train trains a model on the shards of this machine: batches in, gradients
// and updates, exact evaluation, checkpoints from which it goes on.
//
// What is learnt is a pure function of the recipe and the graph: not of threads,
// nor of how often it was interrupted.
package train
