// Package yardstick is the machine's limit for what follows edges: how fast rows
// come that are read at random, whoever reads them, and how fast memory is copied.
package yardstick
