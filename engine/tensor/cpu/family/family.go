// Package family selects the instruction set this process computes with. It is chosen
// once, from what the CPU supports and HOPMESH_CPU, which may ask for less.
package family

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// A Family is an instruction set that kernels are written for.
type Family uint8

// The families. AVX2 includes FMA; AVX512 includes F, DQ, BW and VL. AVX2 and AVX512 give
// the same bits, Generic gives others. NEON has kernels for matrix products and sums over
// edges, which give the bits of AVX2.
const (
	Generic Family = iota
	AVX2
	AVX512
	NEON
)

func (f Family) String() string { return [...]string{"generic", "AVX2", "AVX-512", "NEON"}[f] }

// Within returns the families supported by a CPU whose largest is f, the smallest first.
func (f Family) Within() []Family {
	if f == NEON {
		return []Family{Generic, NEON}
	}
	return []Family{Generic, AVX2, AVX512}[:f+1]
}

// Variable is the environment variable that may select a smaller family.
const Variable = "HOPMESH_CPU"

// Choose returns the family for a value of Variable; "" selects the best one.
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

// Current returns the family of this process. If Variable is invalid it is the best one,
// and Err returns the error.
func Current() Family { return current().family }

// Err returns an error if Variable was not followed.
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
