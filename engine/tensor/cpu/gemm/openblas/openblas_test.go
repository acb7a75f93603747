package openblas

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hopmesh/hopmesh/engine/tensor"
)

// TestFind finds a library in the first place that has one, and says so where none
// has.
func TestFind(t *testing.T) {
	empty, other := t.TempDir(), t.TempDir()
	if _, err := find([]string{empty}); !errors.Is(err, errMissing) {
		t.Errorf("found nothing and said %v", err)
	}
	library := filepath.Join(other, "libopenblas.so.0")
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := find([]string{empty, other}); err != nil || found != library {
		t.Errorf("found %q (%v) and not %q", found, err, library)
	}
}

// TestArguments holds that what is timed has the shapes of the layer.
func TestArguments(t *testing.T) {
	for shape, want := range map[tensor.Shape][7]int{
		tensor.NN: {10, 3, 5, 5, 3, 0, 0}, // 10 x 5 times 5 x 3
		tensor.TN: {5, 3, 10, 5, 3, 1, 0}, // 10 x 5 transposed times 10 x 3
		tensor.NT: {10, 5, 3, 3, 3, 0, 1}, // 10 x 3 times 5 x 3 transposed
	} {
		if got := (Product{M: 10, K: 5, N: 3, Shape: shape}).arguments(); got != want {
			t.Errorf("shape %d: %v and not %v", shape, got, want)
		}
	}
}

// fake is a library that has the two functions and does nothing.
const fake = "void cblas_sgemm(void) {} void openblas_set_num_threads(int n) { (void)n; }"

// TestTime times a library that does nothing, and one that is none.
func TestTime(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libfake.so")
	compile(t, dir, library)
	y, err := Build(t.Context(), library, dir)
	if err != nil {
		t.Fatal(err)
	}
	took, err := y.Time(t.Context(), Product{M: 4, K: 3, N: 2}, 1, time.Millisecond)
	if err != nil || took > time.Second {
		t.Errorf("doing nothing took %v (%v)", took, err)
	}
	y.library = filepath.Join(dir, "time.c")
	if _, err := y.Time(t.Context(), Product{M: 4, K: 3, N: 2}, 1, 0); err == nil {
		t.Error("called a library that is none")
	}
}

func compile(t *testing.T, dir, library string) {
	t.Helper()
	text := filepath.Join(dir, "fake.c")
	if err := os.WriteFile(text, []byte(fake), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", library, text).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
