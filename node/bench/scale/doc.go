// Package scale measures the memory of daemons from outside: for each strategy and number
// of nodes what a job takes, whether --memory bounds it, whether it falls with the number
// of nodes, and whether it is given back. Its cells and bars are fixed in protocol.go and
// depend on nothing that is measured, but for the bounds: shares of what one node needs.
//
// Daemons are processes of this program on loopback. Prepared data directories and
// finished cells are kept in a folder, so that a run goes on where one stopped.
package scale
