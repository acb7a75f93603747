// Package auto chooses how nodes share the steps of a job. Each node counts what some
// steps would take by each strategy, and measures the network. The nodes exchange their
// results, and make the same choice by the same arithmetic. After each epoch the rates
// are corrected by measurements, and if another strategy is faster by then, it is used
// from the next epoch on.
//
// It only chooses among strategies that compute the same gradient. The model of a
// step's time has three parts: computing; what overlaps with it, which is sampling and
// rows of features; and what does not, which is sums of gradients and, with p3,
// activations.
package auto
