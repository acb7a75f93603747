// Package openblas times OpenBLAS, if this machine has it, as a baseline for our own
// matrix products. Nothing depends on it: the library is found by name and called by a
// small C program, compiled here, in its own process.
package openblas

import (
	"context"
	_ "embed" // the program
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

//go:embed time/time.c
var source []byte

var errMissing = errors.New("no libopenblas on this machine: install it (Debian: apt-get install libopenblas0-pthread)")

// places lists where libraries may be.
var places = []string{
	"/usr/lib/*-linux-gnu", "/usr/lib/*-linux-gnu/openblas-pthread", "/usr/lib64", "/usr/lib",
	"/usr/local/lib", "/opt/OpenBLAS/lib", "/opt/homebrew/opt/openblas/lib",
}

// Find returns the path of the library.
func Find() (string, error) {
	return find(append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), places...))
}

func find(places []string) (string, error) {
	for _, place := range places {
		for _, name := range []string{"libopenblas.so", "libopenblas.so.0", "libopenblas.dylib"} {
			found, err := filepath.Glob(filepath.Join(place, name))
			if err != nil {
				return "", fmt.Errorf("look for OpenBLAS in %s: %w", place, err)
			}
			if len(found) > 0 {
				return found[0], nil
			}
		}
	}
	return "", errMissing
}

// A Baseline is the compiled program and the library it calls.
type Baseline struct{ program, library string }

// Build compiles the program in a directory that must exist as long as the Baseline is
// used.
func Build(ctx context.Context, library, dir string) (*Baseline, error) {
	text := filepath.Join(dir, "time.c")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		return nil, fmt.Errorf("write the program that times OpenBLAS: %w", err)
	}
	y := &Baseline{program: filepath.Join(dir, "time-openblas"), library: library}
	out, err := exec.CommandContext(ctx, "cc", "-O2", "-o", y.program, text, "-ldl").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("compile the program that times OpenBLAS (is a C compiler installed?): %w: %s", err, out)
	}
	return y, nil
}

// A Product is m x k times k x n as used by a network's layer: NN is the forward product;
// for the backward ones, c = transposed a (m x k) times b (m x n) for TN and c = a (m x
// n) times transposed b (k x n) for NT.
type Product struct {
	M, K, N int
	Shape   tensor.Shape
}

// Operations returns the number of additions and multiplications.
func (p Product) Operations() float64 { return 2 * float64(p.M) * float64(p.K) * float64(p.N) }

// arguments returns m, n, k, lda, ldb and the transpositions, as sgemm takes them.
func (p Product) arguments() [7]int {
	switch p.Shape {
	case tensor.TN:
		return [...]int{p.K, p.N, p.M, p.K, p.N, 1, 0}
	case tensor.NT:
		return [...]int{p.M, p.K, p.N, p.N, p.N, 0, 1}
	}
	return [...]int{p.M, p.N, p.K, p.K, p.N, 0, 0}
}

// Time returns the median duration of the product, repeated for the given time and at
// least three times, after a warm-up run. Alternate it with what it is compared with, so
// that other load on the machine affects both.
func (y *Baseline) Time(ctx context.Context, p Product, threads int, long time.Duration) (time.Duration, error) {
	args := []string{y.library}
	for _, n := range p.arguments() {
		args = append(args, strconv.Itoa(n))
	}
	args = append(args, strconv.Itoa(threads), strconv.FormatFloat(long.Seconds(), 'f', 3, 64))
	out, err := exec.CommandContext(ctx, y.program, args...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return 0, fmt.Errorf("time OpenBLAS: %w", err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		return 0, fmt.Errorf("read what timed OpenBLAS: %w", err)
	}
	return time.Duration(seconds * 1e9), nil
}
