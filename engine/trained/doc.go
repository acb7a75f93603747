// Package trained holds what is left of a training: the state of a run in its checkpoint,
// the report of each epoch, and a model with its weights, which is exported and predicts.
package trained
