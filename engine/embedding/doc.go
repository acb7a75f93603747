// Package embedding keeps a learnt row for each vertex of a graph without features: a table that
// models read in place of features, and that is updated sparsely. See DESIGN.md.
//
// It knows neither models nor strategies. Whoever trains adds the gradients of each step, has the
// nodes share them, and then has the rows updated.
package embedding
