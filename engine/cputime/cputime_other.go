//go:build !unix

// Package cputime reads how much processor time this process has used.
package cputime

// Process returns 0: this system does not say.
func Process() float64 { return 0 }
