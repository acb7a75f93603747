// Package damage keeps what the nodes of a mesh have found damaged, for their status. Each
// node reports what happened to itself, on its own board, and sends that to the others. It
// repairs nothing.
package damage
