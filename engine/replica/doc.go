// Package replica fetches what a node of a job must know of the shards that it does not
// hold: their degrees, a bit for each training vertex and, where memory allows, their
// edges. Labels and marks stay with their owners, unless a job needs them all. Features are
// not fetched.
package replica
