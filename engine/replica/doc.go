// Package replica fetches what a node of a job must know of the shards that it does not
// hold: how large they are, their training vertices and, where memory allows, their edges.
// Labels and marks stay with their owners, unless they are asked for. Features are not
// fetched. Edges go from the wire into mapped files, which are no memory of the process.
package replica
