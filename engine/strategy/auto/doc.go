// Package auto chooses how nodes share the steps of a job. Each node counts what some
// steps would take by each strategy, and measures the network. The nodes exchange their
// results, and make the same choice by the same arithmetic. Then strategies take turns of
// eight steps or more, and the fastest is kept. They take turns again when the times of
// epochs change.
//
// It only chooses among strategies that compute the same gradient. The model of a
// step's time has three parts: computing; what overlaps with it, which is sampling and
// rows of features; and what does not, which is sums of gradients and, with p3,
// activations.
package auto
