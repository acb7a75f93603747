// Package loopback is a mesh for tests: the nodes of one job inside one process, with
// delays and trouble on request. Nothing but tests and scripts imports it.
package loopback
