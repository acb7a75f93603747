// Package loopback is a mesh for tests: the nodes of one job inside one process, with
// delays and trouble on request. Nothing but tests imports it.
package loopback
