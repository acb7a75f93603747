// Package auto chooses how nodes share the steps of a job: each node counts what some
// steps would ask of it by each strategy, and measures what the network gives; all hear
// of all, and come to the same choice by the same arithmetic. After each epoch the
// rates are set right by what was measured, and if another strategy is faster by then,
// it is used from the next epoch on.
//
// It only chooses among strategies that compute the same gradient. What a step takes is
// a model of three parts: computing; what hides behind it, which is sampling and rows of
// features; and what does not, which is sums of gradients and, with p3, activations.
package auto
