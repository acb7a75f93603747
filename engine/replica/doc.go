// Package replica fetches what a node of a job must know of the shards that it does not
// hold: their labels, marks and degrees and, where memory allows, their edges. Features
// are not fetched.
package replica
