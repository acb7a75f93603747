//go:build unix

package cputime

import "syscall"

// Process returns the seconds that this process has run on all processors, in the system's
// code, too; 0: the system does not say.
func Process() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
