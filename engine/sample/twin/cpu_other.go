//go:build !unix

package twin

// cpuSeconds is not known here.
func cpuSeconds() float64 { return 0 }
