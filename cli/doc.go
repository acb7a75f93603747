// Package cli is the command line. It turns arguments into calls of a daemon's API, and the
// answers into text or JSON. Commands that run in this process instead of in a daemon are
// passed in as functions.
package cli
