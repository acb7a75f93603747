// Package recipe holds what a job trains and how: the model, its optimizer and schedule,
// the mini-batches, and how nodes share the steps. A recipe is the same on all nodes, is
// kept in checkpoints, and is checked before a job begins.
package recipe
