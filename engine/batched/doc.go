// Package batched trains mini-batches: it deals the seed vertices of a step, samples their
// blocks, gathers the rows that these read, computes, adds up the gradients of all nodes,
// and updates the models. Strategies are made of it: some bring a dealer alone, others
// replace where rows come from, how a group is computed, or how models are updated.
package batched
