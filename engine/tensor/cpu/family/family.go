// Package family says which instructions this process computes with: decided once,
// by what the CPU has and by HOPMESH_CPU, which may ask for less.
package family

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// A Family is a set of instructions that kernels are written for.
type Family uint8

// The families. AVX2 has FMA; AVX512 has F, DQ, BW and VL. AVX2 and AVX512 give the
// same bits, Generic gives others; NEON gives those of AVX2 where it has kernels of
// its own, which are products of matrices and sums over edges.
const (
	Generic Family = iota
	AVX2
	AVX512
	NEON
)

func (f Family) String() string { return [...]string{"generic", "AVX2", "AVX-512", "NEON"}[f] }

// Within are the families that a CPU has whose largest is f, the smallest first.
func (f Family) Within() []Family {
	if f == NEON {
		return []Family{Generic, NEON}
	}
	return []Family{Generic, AVX2, AVX512}[:f+1]
}

// Variable is the environment variable that may ask for a smaller family.
const Variable = "HOPMESH_CPU"

// Choose returns the family for a value of Variable, "" being the best there is.
func Choose(asked string, has Family) (Family, error) {
	want, ok := map[string]Family{"": has, "generic": Generic, "avx2": AVX2, "avx512": AVX512, "neon": NEON}[asked]
	switch {
	case !ok:
		return 0, fmt.Errorf("%s is %q and not generic, avx2, avx512 or neon", Variable, asked)
	case !slices.Contains(has.Within(), want):
		return 0, fmt.Errorf("%s asks for %s and this CPU has no more than %s: unset it", Variable, want, has)
	}
	return want, nil
}

// Current is the family of this process. Where Variable can't be followed it is
// the best there is; Err says so.
func Current() Family { return current().family }

// Err is why Variable was not followed.
func Err() error { return current().err }

type choice struct {
	family Family
	err    error
}

var current = sync.OnceValue(func() choice {
	f, err := Choose(os.Getenv(Variable), available())
	if err != nil {
		f = available()
	}
	return choice{f, err}
})
