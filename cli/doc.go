// Package cli is the command line: it turns arguments into calls of a daemon's
// API, and answers into text or JSON. It decides nothing about the mesh; what
// runs in this process instead of in a daemon is passed in as functions.
package cli
