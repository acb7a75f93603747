// Package limit measures the machine's limits for operations along edges: the speed of
// random row reads and of memory copies.
package limit
